package ahci_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"loam/block"
	"loam/block/ahci"
	"loam/block/ahci/model"
	"loam/block/blocktest"
	"loam/block/controller"
	"loam/driver/pci"
	virtio "loam/driver/virtio/model"
)

const size = blocktest.MinSize + 4096

func newModel() *model.Controller { return &model.Controller{Data: make([]byte, size)} }

func name(int) string { return "sda" }

// open opens the disk of a simulated AHCI controller. When the test ends, the disk is closed, and no memory may be
// left allocated.
func open(t testing.TB, c *model.Controller, options ...virtio.Option) *controller.Device {
	t.Helper()
	m, disks, refused, err := try(c, options...)
	if err != nil || len(disks) != 1 || len(refused) != 0 {
		t.Fatalf("%d disks, refused %v, %v", len(disks), refused, err)
	}
	t.Cleanup(func() {
		if err := disks[0].Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if n := m.Held(); n != 0 {
			t.Errorf("%d bytes of memory are kept", n)
		}
	})
	return disks[0]
}

func try(c *model.Controller, options ...virtio.Option) (m *virtio.Machine, disks []*controller.Device, refused []error, err error) {
	m = virtio.New(options...)
	model.Add(m, c)
	bus, err := pci.Scan(m, nil)
	if err == nil {
		disks, refused, err = ahci.Open(m, bus.Functions()[0], name)
	}
	return m, disks, refused, err
}

func TestConformance(t *testing.T) {
	for name, make := range map[string]func() *model.Controller{
		"message": newModel,
		"line":    func() *model.Controller { c := newModel(); c.NoMSI = true; return c },
		"plain":   func() *model.Controller { c := newModel(); c.Plain = true; return c },
	} {
		for memory, options := range map[string][]virtio.Option{"": nil, ", copied": {virtio.Heapless}, ", called": {virtio.Calls}} {
			t.Run(name+memory, func(t *testing.T) {
				blocktest.Run(t, func(t testing.TB) block.Device { return open(t, make(), options...) }, blocktest.Allocates)
			})
		}
	}
}

func TestDescribes(t *testing.T) {
	d := open(t, newModel())
	want := block.Info{
		Name: "sda", LogicalSector: 512, PhysicalSector: 4096, MaxTransfer: 128 << 10, MaxSegments: 32,
		MaxDiscard: 1 << 30, MemoryAlign: 2, Depth: 32, Volatile: true, Timeout: 30 * time.Second,
	}
	if got := d.Info(); got != want || d.Queues() != 1 || d.Size() != size {
		t.Errorf("%+v\nwant %+v\n%d queues, %d bytes", got, want, d.Queues(), d.Size())
	}
}

// A request alone needs one interrupt, and three reads of registers: the controller's status, the port's status, and the active
// commands.
func TestAccesses(t *testing.T) {
	for _, plain := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { // in fake time, opening reads the same registers each time
			const n = 20
			interrupts0, reads0 := accesses(t, plain, 0)
			interrupts, reads := accesses(t, plain, n)
			if interrupts -= interrupts0; interrupts != n {
				t.Errorf("plain %v: %d requests cause %d interrupts", plain, n, interrupts)
			}
			if reads -= reads0; reads != 3*n {
				t.Errorf("plain %v: %d requests read %d registers", plain, n, reads)
			}
		})
	}
}

// accesses opens a disk, reads n times and closes it. It returns the numbers of interrupts, and of reads of registers.
func accesses(t *testing.T, plain bool, n int) (interrupts, reads int) {
	c := newModel()
	c.Plain = plain
	d := open(t, c)
	for range n {
		if err := blocktest.Do(d, 0, block.Request{Op: block.Read, Data: [][]byte{make([]byte, 512)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return c.Interrupts, c.Reads
}

// A write with FUA (force unit access) sets a bit in the command if the disk supports it; otherwise a flush follows
// the write.
func TestFUA(t *testing.T) {
	for _, has := range []bool{true, false} {
		c := newModel()
		c.FUA = has
		d := open(t, c)
		if _, err := block.NewIO(d).WriteFUA(make([]byte, 512), 0); err != nil || c.Flushed != 1 || d.Info().FUA != has {
			t.Errorf("%v: %v, %d flushes, %+v", has, err, c.Flushed, d.Info())
		}
	}
}

// Of many queued commands, only those that touch a bad sector fail.
func TestBadSectors(t *testing.T) {
	bad := []uint64{3, 40, 41}
	for _, plain := range []bool{false, true} {
		c := newModel()
		c.Plain = plain
		c.Bad = func(sector uint64) bool { return slices.Contains(bad, sector) }
		d := open(t, c)
		to := block.NewCompletions()
		rs := make([]*block.Request, 60)
		for i := range rs {
			rs[i] = &block.Request{Op: block.Op(i % 2), Offset: int64(i) * 512, Data: [][]byte{make([]byte, 512)}, To: to}
		}
		d.Submit(0, rs)
		for n := 0; n < len(rs); {
			n += to.Wait(make([]*block.Request, 60))
		}
		for i, r := range rs {
			if want := slices.Contains(bad, uint64(i)); errors.Is(r.Err, block.ErrIO) != want || (r.Err != nil) != want {
				t.Errorf("plain %v, sector %d: %v", plain, i, r.Err)
			}
		}
		if err := blocktest.Do(d, 0, block.Request{Op: block.Flush}); err != nil {
			t.Errorf("Flush after errors: %v", err)
		}
	}
}

// Even if a controller or a disk breaks the protocol, returns errors or is removed, all requests return in bounded
// time.
func TestHostile(t *testing.T) {
	for name, test := range map[string]struct {
		lie   model.Lie
		want  error
		after time.Duration
	}{
		"silence":             {model.Silence, block.ErrTimeout, 30 * time.Second},
		"no interrupt":        {model.Quiet, nil, 30 * time.Second},
		"an error of the bus": {model.Bus, block.ErrGone, 0},
		"a disk pulled out":   {model.Pulled, block.ErrGone, 0},
		"vanishes":            {model.Vanish, block.ErrGone, 30 * time.Second},
		"one more":            {model.Extra, nil, 0},
	} {
		for _, plain := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newModel()
					c.Plain = plain
					c.Next = func() model.Lie { return test.lie }
					d := open(t, c)
					start := time.Now()
					err := blocktest.Do(d, 0, block.Request{Op: block.Read, Data: [][]byte{make([]byte, 512)}})
					if !errors.Is(err, test.want) || time.Since(start) != test.after {
						t.Errorf("%v after %v; want %v after %v", err, time.Since(start), test.want, test.after)
					}
				})
			})
		}
	}
}

// Open checks the disk's description of itself. After it has rejected a disk, no memory is left allocated.
func TestRefuses(t *testing.T) {
	for name, change := range map[string]func(b []byte){
		"a packet device":     func(b []byte) { b[1] = 0x80 },
		"28 bits":             func(b []byte) { b[167] = 1 << 6 },
		"no sectors":          func(b []byte) { clear(b[200:208]) },
		"too many sectors":    func(b []byte) { b[207] = 1 },
		"sectors of 6 bytes":  func(b []byte) { b[213] |= 1 << 4; b[234] = 3 },
		"large sector groups": func(b []byte) { b[212] |= 15 },
	} {
		c := newModel()
		c.Change = change
		m, disks, refused, err := try(c)
		if err != nil || len(disks) != 0 || len(refused) != 1 || !errors.Is(refused[0], ahci.ErrNotDisk) || m.Held() != 0 {
			t.Errorf("%s: %d disks, %v, %v, %d bytes are kept", name, len(disks), refused, err, m.Held())
		}
	}
	if m, disks, refused, err := try(&model.Controller{}); err != nil || len(disks)+len(refused) != 0 || m.Held() != 0 {
		t.Errorf("no disk: %d disks, %v, %v, %d bytes are kept", len(disks), refused, err, m.Held())
	}
}

// If a port does not stop its DMA, its memory is not freed, and Close returns an error.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newModel()
		_, disks, _, err := try(c)
		if err != nil {
			t.Fatal(err)
		}
		c.Stuck = true
		if err := disks[0].Close(); !errors.Is(err, ahci.ErrReset) {
			t.Errorf("Close: %v, want ErrReset", err)
		}
	})
}

// Every request comes back, whatever the controller does.
func FuzzController(f *testing.F) {
	f.Add([]byte{0, 1, 2, 7}, []byte{}, uint8(0))
	f.Add([]byte{1, 1, 7, 0, 3, 4}, []byte{106, 0, 200, 9}, uint8(3))
	f.Add([]byte{1, 0, 7, 0, 3, 4}, []byte{}, uint8(8))
	f.Fuzz(func(t *testing.T, lies, changes []byte, kind uint8) {
		synctest.Test(t, func(t *testing.T) {
			c := newModel()
			c.Plain, c.NoMSI, c.FUA = kind&1 != 0, kind&2 != 0, kind&4 != 0
			c.Next = func() model.Lie {
				if len(lies) == 0 {
					return model.Truth
				}
				l := model.Lie(lies[0]) % model.Lies
				lies = lies[1:]
				return l
			}
			c.Change = func(b []byte) {
				for i := 0; i+1 < len(changes); i += 2 {
					b[int(changes[i])*2%len(b)] = changes[i+1]
				}
			}
			var options []virtio.Option
			if kind&8 != 0 {
				options = append(options, virtio.Calls)
			}
			m, disks, _, err := try(c, options...)
			if err == nil {
				for _, d := range disks {
					blocktest.Exercise(d)
					if err := d.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			if n := m.Held(); n != 0 {
				t.Errorf("%d bytes of memory are kept", n)
			}
		})
	})
}
