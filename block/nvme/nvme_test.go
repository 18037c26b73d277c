package nvme_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loam/block"
	"loam/block/blocktest"
	"loam/block/controller"
	"loam/block/nvme"
	"loam/block/nvme/model"
	"loam/driver/pci"
	virtio "loam/driver/virtio/model"
)

const size = blocktest.MinSize + 4096

func newModel() *model.Controller { return &model.Controller{Data: make([]byte, size), Queues: 3} }

// open opens a controller of the model. When the test ends, it is closed, and no memory may be left
// allocated.
func open(t testing.TB, c *model.Controller, vectors int, options ...virtio.Option) *controller.Device {
	t.Helper()
	m, d, err := try(c, vectors, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if n := m.Held(); n != 0 {
			t.Errorf("%d bytes of memory are kept", n)
		}
	})
	return d
}

func try(c *model.Controller, vectors int, options ...virtio.Option) (*virtio.Machine, *controller.Device, error) {
	m := virtio.New(options...)
	model.Add(m, c, vectors)
	bus, err := pci.Scan(m, nil)
	if err != nil {
		return m, nil, err
	}
	d, err := nvme.Open(m, bus.Functions()[0], nvme.Config{Name: "nvme0n1", Queues: 2})
	return m, d, err
}

// ways are the kinds of interrupts that the tests use, with the number of MSI-X vectors. 0 stands for an interrupt
// line (INTx).
var ways = map[string]int{"a vector for each": 4, "one vector": 1, "a line": 0}

func TestConformance(t *testing.T) {
	for name, vectors := range ways {
		for memory, options := range map[string][]virtio.Option{"": nil, ", copied": {virtio.Heapless}} {
			t.Run(name+memory, func(t *testing.T) {
				blocktest.Run(t, func(t testing.TB) block.Device { return open(t, newModel(), vectors, options...) }, blocktest.Allocates)
			})
		}
	}
}

func TestDescribes(t *testing.T) {
	d := open(t, newModel(), 4)
	want := block.Info{
		Name: "nvme0n1", LogicalSector: 512, PhysicalSector: 4096, MaxTransfer: 32 << 10, MaxSegments: 32,
		MaxDiscard: 1 << 30, MaxZeroes: 32 << 10, MemoryAlign: 4096, Depth: 126, Volatile: true, FUA: true, Timeout: 30 * time.Second,
	}
	if got := d.Info(); got != want || d.Queues() != 2 || d.Size() != size {
		t.Errorf("%+v\nwant %+v\n%d queues, %d bytes", got, want, d.Queues(), d.Size())
	}
}

// A write with FUA (force unit access) is a single command. Memory at page boundaries is not copied; other memory is.
func TestCommands(t *testing.T) {
	c := newModel()
	d := open(t, c, 4)
	o := block.NewIO(d)
	if _, err := o.WriteFUA(make([]byte, 4096), 0); err != nil || c.Flushed != 1 {
		t.Errorf("FUA: %v, %d flushes", err, c.Flushed)
	}
	if err := o.Flush(); err != nil || c.Flushed != 2 {
		t.Errorf("Flush: %v, %d flushes", err, c.Flushed)
	}
	pages := make([]byte, 1<<20) // large heap objects begin at a page boundary
	before := d.Stats().Copied
	r := block.Request{Op: block.Read, Data: [][]byte{pages[512:4096], pages[8192:20480], pages[4096:5120]}}
	if err := blocktest.Do(d, 0, r); err != nil || d.Stats().Copied != before {
		t.Errorf("%v, %d copies of what PRPs can name", err, d.Stats().Copied-before)
	}
	r.Data = [][]byte{pages[:512], pages[512:1024]}
	if err := blocktest.Do(d, 0, r); err != nil || d.Stats().Copied != before+1 {
		t.Errorf("%v, %d copies of what they cannot", err, d.Stats().Copied-before)
	}
}

// An error status fails only its own request.
func TestStatus(t *testing.T) {
	c := newModel()
	statuses := []uint16{0x001, 0x081, 0x182, 0x020, 0x281}
	want := []error{block.ErrUnsupported, block.ErrNoSpace, block.ErrReadOnly, block.ErrReadOnly, block.ErrIO}
	i := 0
	c.Next = func() (model.Lie, uint16) {
		if i == len(statuses) {
			return model.Truth, 0
		}
		i++
		return model.Status, statuses[i-1]
	}
	d := open(t, c, 0)
	for k, w := range append(want, nil) {
		if err := blocktest.Do(d, 0, block.Request{Op: block.Flush}); !errors.Is(err, w) {
			t.Errorf("status %d: %v, want %v", k, err, w)
		}
	}
}

// Even if a controller breaks the protocol, returns errors or is removed, all requests return in bounded time.
func TestHostile(t *testing.T) {
	for name, test := range map[string]struct {
		lie    model.Lie
		number uint16
		want   error
		after  time.Duration
	}{
		"silence":       {model.Silence, 0, block.ErrTimeout, 30 * time.Second},
		"another id":    {model.WrongID, 50, block.ErrGone, 0},
		"no such id":    {model.WrongID, 0xffff, block.ErrGone, 0},
		"two times":     {model.Twice, 0, block.ErrGone, 0},
		"fatal":         {model.Fatal, 0, block.ErrGone, 0},
		"vanishes":      {model.Vanish, 0, block.ErrGone, 30 * time.Second},
		"no interrupt":  {model.Quiet, 0, nil, 30 * time.Second},
		"an extra ring": {model.Spurious, 9, nil, 0},
	} {
		for way, vectors := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newModel()
					c.Next = func() (model.Lie, uint16) { return test.lie, test.number }
					d := open(t, c, vectors)
					after := test.after
					if test.lie == model.Fatal && vectors == 0 {
						after = 30 * time.Second // with an interrupt line, a lost interrupt is noticed only by the timeout
					}
					start := time.Now()
					r := block.Request{Op: block.Read, Data: [][]byte{make([]byte, 512)}}
					err := blocktest.Do(d, 0, r)
					if test.lie == model.Twice && err == nil { // the first of the two completions is correct
						synctest.Wait()
						err = blocktest.Do(d, 0, r)
					}
					if !errors.Is(err, test.want) || time.Since(start) != after {
						t.Errorf("%v after %v; want %v after %v", err, time.Since(start), test.want, after)
					}
				})
			})
		}
	}
}

// Open checks the controller's description of itself. After it has rejected a controller, no memory is left
// allocated.
func TestRefuses(t *testing.T) {
	for name, change := range map[string]func(what uint32, b []byte){
		"sectors of 256 bytes": func(what uint32, b []byte) { b[130] = 8 },
		"sectors of 8 KiB":     func(what uint32, b []byte) { b[130] = 13 },
		"metadata":             func(what uint32, b []byte) { b[128] = 8 },
		"no such format":       func(what uint32, b []byte) { b[26] = 7 },
		"too large":            func(what uint32, b []byte) { b[7] = 0xff },
		"no namespace":         func(what uint32, b []byte) { clear(b) },
	} {
		c := newModel()
		c.Change = change
		m, _, err := try(c, 4)
		if !errors.Is(err, nvme.ErrNamespace) || m.Held() != 0 {
			t.Errorf("%s: %v, %d bytes are kept", name, err, m.Held())
		}
	}
	synctest.Test(t, func(t *testing.T) {
		m, _, err := try(&model.Controller{Stuck: true}, 4)
		if !errors.Is(err, nvme.ErrReset) || m.Held() != 0 {
			t.Errorf("stuck: %v, %d bytes are kept", err, m.Held())
		}
	})
}

// Every request comes back, whatever the controller does.
func FuzzController(f *testing.F) {
	f.Add([]byte{0, 0, 2, 1, 1, 5}, []byte{}, uint8(0))
	f.Add([]byte{4, 0, 5, 0, 8, 1, 0, 0}, []byte{77, 1, 130, 12, 26, 0}, uint8(3))
	f.Fuzz(func(t *testing.T, lies, changes []byte, vectors uint8) {
		synctest.Test(t, func(t *testing.T) {
			c := newModel()
			var mu sync.Mutex
			c.Next = func() (model.Lie, uint16) {
				mu.Lock()
				defer mu.Unlock()
				if len(lies) < 2 {
					return model.Truth, 0
				}
				l, n := model.Lie(lies[0])%model.Lies, uint16(lies[1])
				lies = lies[2:]
				return l, n
			}
			c.Change = func(_ uint32, b []byte) {
				for i := 0; i+1 < len(changes); i += 2 {
					b[int(changes[i])*3%len(b)] = changes[i+1]
				}
			}
			m, d, err := try(c, int(vectors%5))
			if err == nil {
				blocktest.Exercise(d)
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
			if n := m.Held(); n != 0 {
				t.Errorf("%d bytes of memory are kept", n)
			}
		})
	})
}
