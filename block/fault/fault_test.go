package fault_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"loam/block"
	"loam/block/blocktest"
	"loam/block/fault"
	"loam/block/memory"
	"loam/block/trace"
)

func TestConformance(t *testing.T) {
	for name, c := range map[string]fault.Config{
		"none": {}, "slow": {Delay: 10 * time.Microsecond, Jitter: 50 * time.Microsecond},
		"reorder": {Reorder: 0.5, ReorderTime: 100 * time.Microsecond}, "volatile": {Volatile: true},
	} {
		t.Run(name, func(t *testing.T) {
			blocktest.Run(t, func(testing.TB) block.Device {
				return fault.New(memory.New(blocktest.MinSize, memory.Config{Queues: 2}), c)
			}, blocktest.Allocates)
		})
	}
}

// results submits n writes of 4 sectors at once, each filled with its number. It returns their
// errors and the contents of the device afterwards.
func results(t *testing.T, c fault.Config, n int) (errs []error, image []byte, counts fault.Counts) {
	t.Helper()
	m := memory.New(1<<20, memory.Config{})
	d := fault.New(m, c)
	to := block.NewCompletions()
	rs := make([]*block.Request, n)
	for i := range rs {
		rs[i] = &block.Request{Op: block.Write, Offset: int64(i) * 2048, Data: [][]byte{bytes.Repeat([]byte{byte(i + 1)}, 2048)}, To: to}
	}
	d.Submit(0, rs)
	for k := 0; k < n; {
		k += to.Wait(make([]*block.Request, n))
	}
	for _, r := range rs {
		errs = append(errs, r.Err)
	}
	counts = d.Counts()
	d.Close()
	return errs, m.Image(), counts
}

// The same seed injects the same faults; another seed injects others.
func TestSeed(t *testing.T) {
	c := fault.Config{Seed: 1, Fail: [block.Ops]float64{block.Write: 0.3}, Tear: 0.3}
	_, first, counts := results(t, c, 100)
	if _, again, _ := results(t, c, 100); !bytes.Equal(first, again) {
		t.Error("the same seed did something else")
	}
	if counts.Failed < 15 || counts.Torn < 10 {
		t.Errorf("%+v", counts)
	}
	c.Seed = 2
	if _, other, _ := results(t, c, 100); bytes.Equal(first, other) {
		t.Error("another seed did the same")
	}
}

// A torn write stores its first sectors and fails.
func TestTear(t *testing.T) {
	errs, image, _ := results(t, fault.Config{Tear: 1}, 50)
	lengths := map[int]bool{}
	for i, err := range errs {
		part := image[i*2048:][:2048]
		n := bytes.Count(part, []byte{byte(i + 1)})
		if !errors.Is(err, block.ErrIO) || n == 0 || n == 2048 || n%512 != 0 || part[n-1] == 0 {
			t.Fatalf("write %d: %v with %d bytes", i, err, n)
		}
		lengths[n] = true
	}
	if len(lengths) != 3 {
		t.Errorf("lengths are %v", lengths)
	}
}

// A rule fails the requests that it matches, up to its limit.
func TestRule(t *testing.T) {
	d := fault.New(memory.New(1<<20, memory.Config{}), fault.Config{Rules: []fault.Rule{
		{Ops: []block.Op{block.Write}, From: 4096, To: 8192, Skip: 1, Times: 2, Err: block.ErrNoSpace},
		{Ops: []block.Op{block.Flush}},
	}})
	defer d.Close()
	write := func(at int64) error {
		return blocktest.Do(d, 0, block.Request{Op: block.Write, Offset: at, Data: [][]byte{make([]byte, 512)}})
	}
	got := []error{write(0), write(4096), write(8192), write(7680), write(4608), write(4096), blocktest.Do(d, 0, block.Request{Op: block.Flush})}
	want := []error{nil, nil, nil, block.ErrNoSpace, block.ErrNoSpace, nil, block.ErrIO}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A request may complete before an earlier one, but no request is overtaken by a later flush.
func TestReorder(t *testing.T) {
	var log trace.Log
	d := fault.New(trace.New(memory.New(1<<20, memory.Config{}), &log), fault.Config{Seed: 3, Reorder: 0.3})
	to := block.NewCompletions()
	var rs []*block.Request
	for i := range 60 {
		r := &block.Request{Op: block.Write, Offset: int64(i) * 512, Data: [][]byte{make([]byte, 512)}, To: to}
		if i%20 == 19 {
			r.Op = block.Flush
		}
		rs = append(rs, r)
	}
	d.Submit(0, rs)
	for k := 0; k < len(rs); {
		k += to.Wait(make([]*block.Request, 60))
	}
	flushes, overtaken := 0, 0
	last := int64(-1)
	for _, e := range log.Events() {
		switch {
		case e.Completed:
		case e.Op == block.Flush:
			flushes++
		default:
			if int(e.Offset/512)/20 < flushes {
				t.Errorf("write %d begins behind flush %d", e.Offset/512, flushes)
			}
			if e.Offset < last {
				overtaken++
			}
			last = max(last, e.Offset)
		}
	}
	d.Close()
	if n := d.Counts().Reordered; overtaken == 0 || int(n) < overtaken {
		t.Errorf("%d writes begin late, %d are counted", overtaken, n)
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := fault.New(memory.New(1<<20, memory.Config{}), fault.Config{Delay: time.Second})
		start := time.Now()
		if err := blocktest.Do(d, 0, block.Request{Op: block.Flush}); err != nil || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		d.Close()
	})
}

// After VanishAfter requests the device is gone, and requests in flight fail, too.
func TestVanish(t *testing.T) {
	errs, _, _ := results(t, fault.Config{VanishAfter: 10, Delay: time.Millisecond}, 20)
	for i, err := range errs {
		if !errors.Is(err, block.ErrGone) {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

// A cut keeps flushed writes. The seed decides about the other writes, with the same result each
// time.
func TestCut(t *testing.T) {
	run := func(seed uint64) ([]byte, uint64) {
		m := memory.New(1<<20, memory.Config{})
		d := fault.New(m, fault.Config{Volatile: true})
		o := block.NewIO(d)
		o.WriteAt(bytes.Repeat([]byte{1}, 64<<10), 0)
		o.Flush()
		o.WriteAt(bytes.Repeat([]byte{2}, 32<<10), 32<<10)
		o.WriteFUA(bytes.Repeat([]byte{3}, 512), 128<<10)
		got := make([]byte, 1024)
		if o.ReadAt(got, 32<<10-512); got[0] != 1 || got[512] != 2 {
			t.Error("the cache is not visible")
		}
		d.Cut(seed)
		if _, err := o.WriteAt(got, 0); !errors.Is(err, block.ErrGone) {
			t.Errorf("after the cut: %v", err)
		}
		d.Close()
		return m.Image(), d.Counts().Dropped
	}
	image, dropped := run(7)
	if again, _ := run(7); !bytes.Equal(image, again) {
		t.Error("the same seed did something else")
	}
	lost := bytes.Count(image[32<<10:64<<10], []byte{1}) / 512
	if bytes.Count(image[:32<<10], []byte{1}) != 32<<10 || image[128<<10] != 3 || lost != int(dropped) || lost == 0 || lost == 64 {
		t.Errorf("%d sectors lost, %d counted", lost, dropped)
	}
}
