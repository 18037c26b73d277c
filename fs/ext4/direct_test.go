package ext4_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/block"
	"loam/block/fault"
	"loam/block/memory"
	"loam/fs"
	"loam/fs/ext4"
	"loam/internal/race"
	"loam/mem/cache"
	"loam/mem/memtest"
)

// openDirect opens a file twice: with O_DIRECT and without.
func openDirect(t *testing.T, v *fs.View, name string) (direct, buffered *fs.File) {
	t.Helper()
	direct, err := v.Open(v.Dir, name, fs.ReadWrite|fs.Create|fs.Direct, 0o644)
	must(t, err)
	buffered, err = v.Open(v.Dir, name, fs.ReadWrite, 0)
	must(t, err)
	return direct, buffered
}

// Offset, length and memory address of direct I/O are multiples of the sector size of the device (open(2)). A read at
// the end of the file needs no alignment.
func TestDirectAlignment(t *testing.T) {
	for _, sector := range []int{512, 4096} {
		base := loadImage(t, makeImage(t, "16M", "-b", "4096"))
		d := memory.FromImage(base.Image(), memory.Config{LogicalSector: sector})
		s := mount(t, d, ext4.Config{Interval: time.Hour})
		direct, buffered := openDirect(t, newView(s), "f")
		for _, c := range []struct {
			offset int64
			n      int
			want   error
		}{
			{0, sector, nil}, {int64(sector), 2 * sector, nil}, {int64(3 * sector), 8192, nil},
			{1, sector, linux.EINVAL}, {0, sector - 1, linux.EINVAL}, {int64(sector) / 2, sector, linux.EINVAL},
		} {
			if _, err := direct.WriteAt(make([]byte, c.n), c.offset); !errors.Is(err, c.want) {
				t.Errorf("sectors of %d: write of %d at %d: %v, want %v", sector, c.n, c.offset, err, c.want)
			}
			if _, err := direct.ReadAt(make([]byte, c.n), c.offset); !errors.Is(err, c.want) {
				t.Errorf("sectors of %d: read of %d at %d: %v, want %v", sector, c.n, c.offset, err, c.want)
			}
		}
		if n, err := direct.ReadAt(make([]byte, 3), 1<<20+1); n != 0 || err != nil {
			t.Errorf("read at the end: %d, %v", n, err)
		}
		must(t, buffered.Truncate(int64(sector)+100)) // a read up to the end may end inside a sector
		if n, err := direct.ReadAt(make([]byte, 4*sector), int64(sector)); n != 100 || err != nil {
			t.Errorf("read up to the end: %d, %v", n, err)
		}
		direct.SetFlags(fs.ReadWrite | fs.Append | fs.Direct)
		if _, err := direct.Write(make([]byte, sector)); !errors.Is(err, linux.EINVAL) {
			t.Errorf("append at a partial sector: %v", err)
		}
		must(t, buffered.Truncate(int64(sector)))
		if n, err := direct.Write(bytes.Repeat([]byte{7}, sector)); n != sector || err != nil {
			t.Errorf("append: %d, %v", n, err)
		}
		if got := buffered.Attr().Size; got != int64(2*sector) {
			t.Errorf("the size is %d", got)
		}
		direct.SetFlags(fs.ReadWrite)
		if _, err := direct.WriteAt([]byte{1}, 1); err != nil {
			t.Errorf("after O_DIRECT was cleared: %v", err)
		}
		must(t, errors.Join(direct.Close(), buffered.Close(), s.Close()))
		check(t, d)
	}
}

// A directory cannot be opened with O_DIRECT.
func TestDirectDirectory(t *testing.T) {
	s := mount(t, loadImage(t, makeImage(t, "16M")), ext4.Config{})
	defer s.Close()
	v := newView(s)
	if _, err := v.Open(v.Dir, "/", fs.ReadOnly|fs.Direct, 0); !errors.Is(err, linux.EINVAL) {
		t.Errorf("error %v", err)
	}
}

// A direct write is on the device when it returns, and a direct read comes from the device.
func TestDirectReachesDevice(t *testing.T) {
	d := loadImage(t, makeImage(t, "16M", "-b", "4096"))
	s := mount(t, d, ext4.Config{Interval: time.Hour})
	direct, _ := openDirect(t, newView(s), "f")
	data := bytes.Repeat([]byte("0123456789abcdef"), 64<<10/16)
	for round := range 3 { // round 0 writes into a hole, later rounds write over allocated blocks
		data[0] = byte(round)
		before := d.Stats().WriteBytes
		if n, err := direct.WriteAt(data, 0); n != len(data) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		if n := d.Stats().WriteBytes - before; n < uint64(len(data)) {
			t.Errorf("round %d: %d bytes were written", round, n)
		}
		before = d.Stats().ReadBytes
		got := make([]byte, len(data))
		if n, err := direct.ReadAt(got, 0); n != len(got) || err != nil || !bytes.Equal(got, data) {
			t.Fatalf("round %d: read %d, %v", round, n, err)
		}
		if n := d.Stats().ReadBytes - before; n != uint64(len(data)) {
			t.Errorf("round %d: %d bytes were read", round, n)
		}
	}
	must(t, direct.Close())
	must(t, s.Close())
}

// Direct and buffered reads and writes, mappings, truncate and fallocate see the same content.
func TestDirectModel(t *testing.T) {
	for _, block := range []string{"1024", "4096"} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(block, "/", seed), func(t *testing.T) { directModel(t, block, seed) })
		}
	}
}

func directModel(t *testing.T, block string, seed uint64) {
	d := loadImage(t, makeImage(t, "32M", "-b", block))
	s := mount(t, d, ext4.Config{Interval: time.Hour, CacheBytes: 1 << 20})
	v := newView(s)
	direct, buffered := openDirect(t, v, "f")
	mapped := mappings{memory: memtest.NewMemory(512), of: map[fs.Node]*mapping{}}
	mapped.pages = cache.New(mapped.memory, cache.Limits{})
	m := &model{rnd: rand.New(rand.NewPCG(seed, 9)), block: int(s.Usage().BlockSize)}
	steps := 1500
	if race.Enabled {
		steps = 300
	}
	for step := range steps {
		what := ""
		const sector = 512
		at, n := m.rnd.IntN(most/2/sector)*sector, (1+m.rnd.IntN(64))*sector
		switch m.rnd.IntN(5) {
		case 0, 1:
			what = "direct write"
			data := bytes.Repeat([]byte{byte(step) | 1}, n)
			m.grow(at + n)
			copy(m.b[at:], data)
			if got, err := inPlace(m.rnd, direct, data, int64(at), true); got != n || err != nil {
				t.Fatalf("step %d: %s of %d at %d: %d, %v", step, what, n, at, got, err)
			}
		case 2:
			what = "direct read"
			got := make([]byte, n)
			k, err := inPlace(m.rnd, direct, got, int64(at), false)
			want := m.b[min(at, len(m.b)):min(at+n, len(m.b))]
			if err != nil || !bytes.Equal(got[:k], want) {
				t.Fatalf("step %d: %s of %d at %d: %d, %v; want %d", step, what, n, at, k, err, len(want))
			}
		case 3:
			if len(m.b) == 0 {
				continue
			}
			what = "store"
			at = m.rnd.IntN(len(m.b))
			data := bytes.Repeat([]byte{byte(step) | 1}, min(n, len(m.b)-at))
			copy(m.b[at:], data)
			mapped.store(t, v, "f", int64(at), data)
		case 4:
			call, do, want := m.change(buffered)
			what = call
			if err := do(); !errors.Is(err, want) {
				t.Fatalf("step %d: %s: %v, want %v", step, call, err, want)
			}
		}
		if step%40 == 0 {
			must(t, s.Sync())
		}
		if step%7 == 0 {
			if got := content(t, v, "f"); !bytes.Equal(got, m.b) {
				t.Fatalf("step %d: %s: the content differs: %d bytes, want %d", step, what, len(got), len(m.b))
			}
		}
	}
	mapped.unmap(t)
	must(t, errors.Join(direct.Close(), buffered.Close(), s.Close()))
	check(t, d)
	s = mount(t, d, ext4.Config{})
	if got := content(t, newView(s), "f"); !bytes.Equal(got, m.b) {
		t.Error("opened again, the content differs")
	}
	must(t, s.Close())
}

// inPlace reads or writes like the call layer: in place if that is possible, and else with ReadAt and WriteAt. The pieces of memory
// have random lengths.
func inPlace(rnd *rand.Rand, f *fs.File, p []byte, offset int64, write bool) (n int, err error) {
	var list [][]byte
	for rest := p; len(rest) > 0; {
		k := min((1+rnd.IntN(16))*512, len(rest))
		list, rest = append(list, rest[:k]), rest[k:]
	}
	switch n, err = f.Transfer(&fs.Pieces{List: list}, offset, write); {
	case err != fs.ErrCopy:
		return n, err
	case write:
		return f.WriteAt(p, offset)
	}
	return f.ReadAt(p, offset)
}

// Content moves in place if the device has all of it, and if neither the cache has newer content nor a mapping has pages.
func TestDirectInPlace(t *testing.T) {
	d := loadImage(t, makeImage(t, "16M", "-b", "4096"))
	s := mount(t, d, ext4.Config{Interval: time.Hour})
	v := newView(s)
	direct, buffered := openDirect(t, v, "f")
	_, err := direct.WriteAt(make([]byte, 64<<10), 0)
	must(t, err)
	page := bytes.Repeat([]byte{3}, 4096)
	p := fs.Pieces{List: [][]byte{page[:512], page[512:], bytes.Repeat([]byte{4}, 4096)}}
	try := func(what string, offset int64, write bool, want error) {
		t.Helper()
		known := want == nil || !strings.Contains(what, "unwritten") // what the cache holds is checked by Transfer alone
		if may := direct.MayTransfer(8192, offset, write); known && may != (want == nil) {
			t.Errorf("%s: it may be done: %v", what, may)
		}
		if n, err := direct.Transfer(&p, offset, write); err != want || err == nil && n != 8192 {
			t.Errorf("%s: %d, %v; want %v", what, n, err, want)
		}
	}
	before := d.Stats()
	try("write", 4096, true, nil)
	try("read", 4096, false, nil)
	after := d.Stats()
	if n := after.Done[block.Write] - before.Done[block.Write]; n != 1 {
		t.Errorf("%d writes", n)
	}
	if n := after.Done[block.Read] - before.Done[block.Read]; n != 1 {
		t.Errorf("%d reads", n)
	}
	try("read beyond the end", 60<<10, false, fs.ErrCopy)
	try("write beyond the end", 60<<10, true, fs.ErrCopy)
	try("odd offset", 100, false, fs.ErrCopy)
	try("current offset", fs.Current, false, nil)
	try("current offset", fs.Current, true, nil)
	if at, err := direct.Seek(0, fs.SeekCur); at != 16384 || err != nil {
		t.Errorf("the offset is %d, %v", at, err)
	}
	_, err = buffered.WriteAt([]byte{5}, 8191)
	must(t, err)
	try("read of unwritten content", 4096, false, fs.ErrCopy)
	try("write over unwritten content", 4096, true, fs.ErrCopy)
	try("read beside it", 8192, false, nil)
	must(t, buffered.Sync())
	try("read of written content", 4096, false, nil)
	if page[0] != 3 || page[4095] != 5 {
		t.Errorf("bytes %d and %d were read", page[0], page[4095])
	}
	direct.SetFlags(fs.ReadWrite | fs.Append | fs.Direct)
	try("append", 0, true, fs.ErrCopy)
	direct.SetFlags(fs.ReadWrite)
	try("without O_DIRECT", 0, false, fs.ErrCopy)
	direct.SetFlags(fs.ReadWrite | fs.Direct)
	mapped := mappings{memory: memtest.NewMemory(2), of: map[fs.Node]*mapping{}}
	mapped.pages = cache.New(mapped.memory, cache.Limits{})
	mapped.store(t, v, "f", 0, []byte{6})
	try("read of a mapped file", 0, false, fs.ErrCopy)
	try("write of a mapped file", 0, true, fs.ErrCopy)
	mapped.unmap(t)
	must(t, errors.Join(direct.Close(), buffered.Close(), s.Close()))
	check(t, d)
}

// Direct reads of holes and of preallocated blocks return zeros, although the blocks have held the content of a removed file. The device
// does not access the memory of a program for such a range.
func TestDirectReadsZeros(t *testing.T) {
	const part = 16 << 10
	d := loadImage(t, makeImage(t, "8M", "-b", "4096", "-O", "^has_journal"))
	s := mount(t, d, ext4.Config{Interval: time.Hour})
	v := newView(s)
	old, other := openDirect(t, v, "old")
	stale := bytes.Repeat([]byte{9}, part)
	for at, full := int64(0), false; !full; at += part {
		_, err := old.WriteAt(stale, at)
		if full = errors.Is(err, linux.ENOSPC); !full {
			must(t, err)
		}
	}
	must(t, errors.Join(old.Close(), other.Close(), v.Unlink(v.Dir, "old"), s.Sync()))

	direct, buffered := openDirect(t, v, "f")
	_, err := direct.WriteAt(bytes.Repeat([]byte{1}, part), 0)
	must(t, errors.Join(err, direct.Handle().(fs.Allocator).Allocate(0, 2*part, part), buffered.Sync()))
	for what, offset := range map[string]int64{"a hole": part, "preallocated": 2 * part, "written, then a hole": part / 2, "a hole, then preallocated": 3 * part / 2} {
		got := bytes.Repeat([]byte{7}, part)
		before := d.Stats().Done[block.Read]
		if n, err := direct.Transfer(&fs.Pieces{List: [][]byte{got}}, offset, false); err != fs.ErrCopy || bytes.Count(got, []byte{7}) != part {
			t.Errorf("%s: in place: %d, %v", what, n, err)
		}
		if n := d.Stats().Done[block.Read] - before; n != 0 {
			t.Errorf("%s: the device has read %d times", what, n)
		}
		want := make([]byte, part)
		copy(want, bytes.Repeat([]byte{1}, max(0, part-int(offset))))
		if n, err := direct.ReadAt(got, offset); n != part || err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d, %v, byte %d", what, n, err, got[part-1])
		}
	}
	must(t, errors.Join(direct.Close(), buffered.Close(), s.Close()))
	check(t, d)
}

// If a device has failed and may still access the memory of a transfer, the memory is reported as lost.
func TestDirectLost(t *testing.T) {
	d := loadImage(t, makeImage(t, "16M", "-b", "4096"))
	s := mount(t, d, ext4.Config{})
	direct, _ := openDirect(t, newView(s), "f")
	_, err := direct.WriteAt(make([]byte, 8192), 0)
	must(t, errors.Join(err, direct.Close(), s.Close()))
	for _, held := range []bool{false, true} {
		cause := block.ErrIO
		if held {
			cause = fmt.Errorf("%w: %w", block.ErrGone, block.ErrHeld)
		}
		bad := fault.New(d, fault.Config{Rules: []fault.Rule{{Ops: []block.Op{block.Write}, Skip: 2, Times: 1, Err: cause}}})
		s = mount(t, bad, ext4.Config{Interval: time.Hour})
		direct, _ = openDirect(t, newView(s), "f")
		failed := 0
		for range 4 {
			p := fs.Pieces{List: [][]byte{make([]byte, 4096), make([]byte, 4096)}}
			if _, err := direct.Transfer(&p, 0, true); err == linux.EIO {
				if failed++; p.Lost != held {
					t.Errorf("held: %v, lost: %v", held, p.Lost)
				}
			} else if must(t, err); p.Lost {
				t.Error("memory is lost without an error")
			}
		}
		if failed != 1 {
			t.Errorf("%d transfers failed", failed)
		}
		must(t, errors.Join(direct.Close(), s.Close()))
	}
}

// gated is a device that holds one write before it is carried out, and one read after it was carried out.
type gated struct {
	*memory.Device
	armed         atomic.Bool
	write, read   chan struct{} // each is closed when the device holds the write, or the read
	written, seen chan struct{} // the test closes each to release the write, or the read
}

func (g *gated) Submit(queue int, rs []*block.Request) {
	hold := g.armed.Load()
	if hold && rs[0].Op == block.Write {
		close(g.write)
		<-g.written
	}
	op := rs[0].Op
	g.Device.Submit(queue, rs)
	if hold && op == block.Read {
		close(g.read)
		<-g.seen
	}
}

// A buffered read at the same time as a direct write does not leave the content from before the write in the cache.
func TestDirectWhileReading(t *testing.T) {
	g := &gated{Device: loadImage(t, makeImage(t, "16M", "-b", "4096"))}
	g.write, g.read, g.written, g.seen = make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := mount(t, g, ext4.Config{Interval: time.Hour})
	direct, buffered := openDirect(t, newView(s), "f")
	data := bytes.Repeat([]byte{1}, 4096)
	write := func() {
		if n, err := direct.WriteAt(data, 0); n != len(data) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	read := func() []byte {
		got := make([]byte, len(data))
		if _, err := buffered.ReadAt(got, 0); err != nil {
			t.Error(err)
		}
		return got
	}
	write()
	must(t, s.Sync())
	data = bytes.Repeat([]byte{2}, 4096)
	g.armed.Store(true)
	var writer, reader sync.WaitGroup
	writer.Go(write)
	<-g.write
	reader.Go(func() { read() })
	<-g.read
	g.armed.Store(false)
	close(g.written)
	writer.Wait()
	close(g.seen)
	reader.Wait()
	if got := read(); !bytes.Equal(got, data) {
		t.Errorf("the cache has %d, the device %d", got[0], data[0])
	}
	must(t, errors.Join(direct.Close(), buffered.Close(), s.Close()))
}

// fsync after a direct write flushes the device, also if nothing else has changed.
func TestDirectSync(t *testing.T) {
	r := &recorder{Device: loadImage(t, makeImage(t, "16M", "-b", "4096"))}
	now := time.Now()
	s := mount(t, r, ext4.Config{Interval: time.Hour, Now: func() time.Time { return now }})
	direct, _ := openDirect(t, newView(s), "f")
	data := make([]byte, 8192)
	for round := range 4 {
		if _, err := direct.WriteAt(data, 0); err != nil {
			t.Fatal(err)
		}
		must(t, direct.Sync())
		if last := r.events[len(r.events)-1]; last.data != nil {
			t.Fatalf("round %d: the last event is a write of %d bytes at %d", round, len(last.data), last.at)
		}
	}
	must(t, direct.Close())
	must(t, s.Close())
}

// A failed direct write returns EIO. The file system remains writable.
func TestDirectFails(t *testing.T) {
	d := loadImage(t, makeImage(t, "16M", "-b", "4096"))
	s := mount(t, d, ext4.Config{})
	direct, _ := openDirect(t, newView(s), "f")
	_, err := direct.WriteAt(make([]byte, 64<<10), 0)
	must(t, errors.Join(err, direct.Close(), s.Close()))

	bad := fault.New(d, fault.Config{Rules: []fault.Rule{{Ops: []block.Op{block.Write}, Skip: 2, Times: 1}}})
	s = mount(t, bad, ext4.Config{Interval: time.Hour})
	direct, _ = openDirect(t, newView(s), "f")
	failed := 0
	data := bytes.Repeat([]byte{9}, 8192)
	for range 4 {
		if _, err := direct.WriteAt(data, 0); errors.Is(err, linux.EIO) {
			failed++
		} else {
			must(t, err)
		}
	}
	if failed != 1 || s.ReadOnly() != "" {
		t.Errorf("%d writes failed, read-only: %q", failed, s.ReadOnly())
	}
	got := make([]byte, len(data))
	if _, err := direct.ReadAt(got, 0); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read afterwards: %v", err)
	}
	must(t, errors.Join(direct.Close(), s.Close()))
	check(t, d)
}
