package virtioblk_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"loam/block"
	"loam/block/blocktest"
	"loam/block/controller"
	"loam/block/virtioblk"
	"loam/driver/virtio"
	"loam/driver/virtio/model"
)

const everything = model.DiskSizeMax | model.DiskSegMax | model.DiskBlock | model.DiskFlush | model.DiskTopology |
	model.DiskQueues | model.DiskDiscard | model.DiskZeroes

const sectors = blocktest.MinSize/512 + 8

// open opens a simulated virtio disk. When the test ends, the disk is closed, and no memory may be left allocated.
func open(t testing.TB, disk *model.Disk, way string, options ...model.Option) *controller.Device {
	t.Helper()
	m := model.New(options...)
	v := m.Add(t, way, disk.Device, 3)
	d, err := virtioblk.Open(v, virtioblk.Config{Name: "vda", Queues: 2})
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

// each runs a test for all virtio transports and all kinds of virtqueue memory.
func each(t *testing.T, test func(t *testing.T, way string, options ...model.Option)) {
	for way := range model.Ways {
		for name, options := range map[string][]model.Option{"": nil, ", copied": {model.Heapless}} {
			t.Run(way+name, func(t *testing.T) { test(t, way, options...) })
		}
	}
}

func TestConformance(t *testing.T) {
	each(t, func(t *testing.T, way string, options ...model.Option) {
		blocktest.Run(t, func(t testing.TB) block.Device {
			disk := model.NewDisk(sectors, everything, 512)
			t.Cleanup(disk.Close)
			return open(t, disk, way, options...)
		})
	})
	t.Run("plain", func(t *testing.T) {
		blocktest.Run(t, func(t testing.TB) block.Device {
			disk := model.NewDisk(sectors, 0, 0)
			disk.Plain = true
			return open(t, disk, "MMIO")
		})
	})
}

// Info returns the limits and sizes that the device declares.
func TestDescribes(t *testing.T) {
	disk := model.NewDisk(sectors, everything, 1024)
	d := open(t, disk, "PCI, a vector for each")
	want := block.Info{
		Name: "vda", LogicalSector: 1024, PhysicalSector: 8192, MaxTransfer: 8192, MaxSegments: 32,
		MaxDiscard: 100 * 512, MaxZeroes: 64 * 512, MemoryAlign: 1, Depth: 128, Volatile: true, Timeout: 30 * time.Second,
	}
	if got := d.Info(); got != want || d.Queues() != 2 || d.Size() != sectors*512 {
		t.Errorf("%+v\nwant %+v\n%d queues, %d bytes", got, want, d.Queues(), d.Size())
	}
}

// A flush is sent to the device. A write with FUA is sent as a write and a flush, since virtio has no FUA.
func TestFlush(t *testing.T) {
	disk := model.NewDisk(sectors, everything, 512)
	d := open(t, disk, "MMIO")
	o := block.NewIO(d)
	if _, err := o.WriteFUA(make([]byte, 512), 0); err != nil || disk.Flushed != 1 {
		t.Errorf("FUA: %v, %d flushes", err, disk.Flushed)
	}
	if err := o.Flush(); err != nil || disk.Flushed != 2 {
		t.Errorf("Flush: %v, %d flushes", err, disk.Flushed)
	}
}

// An error status fails only its own request. If the flush after a write with FUA fails, the write
// fails.
func TestStatus(t *testing.T) {
	disk := model.NewDisk(sectors, everything, 512)
	disk.Status = func(kind uint32, sector uint64) uint8 {
		if kind == 4 {
			return 1
		}
		return uint8(min(sector, 3))
	}
	o := block.NewIO(open(t, disk, "MMIO"))
	for sector, want := range []error{nil, block.ErrIO, block.ErrUnsupported, block.ErrIO} {
		if _, err := o.ReadAt(make([]byte, 512), int64(sector)*512); !errors.Is(err, want) {
			t.Errorf("status %d: %v, want %v", sector, err, want)
		}
	}
	if _, err := o.WriteFUA(make([]byte, 512), 0); !errors.Is(err, block.ErrIO) {
		t.Errorf("FUA whose flush fails: %v", err)
	}
	if s := o.Device().Stats(); s.Failed != 4 || s.Done[block.Read] != 1 {
		t.Errorf("%+v", s)
	}
}

func TestReadOnly(t *testing.T) {
	d := open(t, model.NewDisk(sectors, model.DiskReadOnly, 0), "MMIO")
	if _, err := block.NewIO(d).WriteAt(make([]byte, 512), 0); !errors.Is(err, block.ErrReadOnly) {
		t.Errorf("WriteAt: %v", err)
	}
}

// A disk may grow; Resized is then ready.
func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := model.NewDisk(0x1000, everything, 512)
		d := open(t, disk, "PCI, a line")
		disk.Change(func(config []byte) { config[1] = 0xff })
		<-d.Resized()
		if d.Size() != 0xff00*512 || d.Stats().Resizes != 1 {
			t.Errorf("%d bytes", d.Size())
		}
	})
}

type lie = struct {
	Lie    model.Lie
	Number uint32
}

// If a disk does not answer, or answers nonsense, all requests fail in bounded time, and so do all
// later ones.
func TestHostile(t *testing.T) {
	for name, test := range map[string]struct {
		lie   lie
		want  error
		after time.Duration
	}{
		"silence":            {lie{model.Silence, 0}, block.ErrTimeout, 30 * time.Second},
		"an id out of range": {lie{model.WrongID, 1 << 30}, virtio.ErrNonsense, 0},
		"another id":         {lie{model.WrongID, 9}, virtio.ErrNonsense, 0},
		"two times":          {lie{model.Twice, 0}, virtio.ErrNonsense, 0},
		"too long":           {lie{model.TooLong, 1}, virtio.ErrNonsense, 0},
		"a jump":             {lie{model.Jump, 50}, virtio.ErrNonsense, 0},
		"broken":             {lie{model.Broken, 0}, virtio.ErrBroken, 0},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, way string, options ...model.Option) {
				synctest.Test(t, func(t *testing.T) { testLie(t, test.lie, test.want, test.after, way, options) })
			})
		})
	}
}

func testLie(t *testing.T, told lie, want error, after time.Duration, way string, options []model.Option) {
	disk := model.NewDisk(sectors, everything, 512)
	d := open(t, disk, way, options...)
	disk.Become(disk.Work, &model.Hostile{Next: model.Script(told)})
	start := time.Now()
	r := block.Request{Op: block.Read, Data: [][]byte{make([]byte, 512)}}
	err := blocktest.Do(d, 0, r)
	if err == nil { // the lie concerns a later completion than the first
		synctest.Wait()
		err = blocktest.Do(d, 0, r)
	}
	if !errors.Is(err, want) || !block.Final(err) || time.Since(start) != after {
		t.Errorf("Read: %v after %v; want %v after %v", err, time.Since(start), want, after)
	}
	if err := blocktest.Do(d, 1, block.Request{Op: block.Flush}); !errors.Is(err, block.ErrGone) {
		t.Errorf("later: %v, want ErrGone", err)
	}
}

// A completion whose interrupt was lost is found when the timeout is reached.
func TestLostInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := model.NewDisk(sectors, everything, 512)
		d := open(t, disk, "PCI, a vector for each")
		disk.Become(disk.Work, &model.Hostile{Next: model.Script(lie{model.Quiet, 0})})
		start := time.Now()
		err := blocktest.Do(d, 0, block.Request{Op: block.Flush})
		if err != nil || time.Since(start) != 30*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// An overdue request fails with ErrTimeout. The other requests of the device fail with ErrGone, whether they were started or
// not.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := model.NewDisk(sectors, everything, 512)
		d := open(t, disk, "MMIO")
		disk.Become(func(*model.Device) {}, nil)
		to := block.NewCompletions()
		rs := make([]*block.Request, 100)
		for i := range rs {
			rs[i] = &block.Request{Op: block.Flush, To: to}
		}
		d.Submit(0, rs[:1])
		time.Sleep(time.Second)
		d.Submit(0, rs[1:])
		for n := 0; n < len(rs); {
			n += to.Wait(make([]*block.Request, 100))
		}
		for i, r := range rs {
			if want := i == 0; errors.Is(r.Err, block.ErrTimeout) != want && errors.Is(r.Err, block.ErrGone) == want {
				t.Errorf("request %d: %v", i, r.Err)
			}
		}
	})
}

func TestBadConfig(t *testing.T) {
	for name, change := range map[string]func(config []byte){
		"a block of 3 bytes":       func(c []byte) { c[20], c[21] = 3, 0 },
		"a block of 64 KiB":        func(c []byte) { c[21], c[22] = 0, 1 },
		"segments of 16 bytes":     func(c []byte) { c[8], c[9] = 16, 0 },
		"more than there are":      func(c []byte) { c[7] = 1 },
		"a physical block too big": func(c []byte) { c[24] = 200 },
	} {
		disk := model.NewDisk(sectors, everything, 512)
		change(disk.Config)
		m := model.New()
		if _, err := virtioblk.Open(m.Add(t, "MMIO", disk.Device, 1), virtioblk.Config{}); !errors.Is(err, virtio.ErrLayout) {
			t.Errorf("%s: %v, want ErrLayout", name, err)
		}
		if m.Held() != 0 {
			t.Errorf("%s: %d bytes are kept", name, m.Held())
		}
	}
}

// Every request comes back, whatever the disk does.
func FuzzDisk(f *testing.F) {
	f.Add([]byte{0, 0, 5, 50, 1, 3}, []byte{}, true)
	f.Add([]byte{9, 200, 7, 0, 10, 0, 3, 3}, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, false)
	f.Fuzz(func(t *testing.T, lies, config []byte, copied bool) {
		synctest.Test(t, func(t *testing.T) {
			disk := model.NewDisk(sectors, everything, 512)
			copy(disk.Config, config)
			var options []model.Option
			if copied {
				options = append(options, model.Heapless)
			}
			m := model.New(options...)
			d, err := virtioblk.Open(m.Add(t, "PCI, a line", disk.Device, 3), virtioblk.Config{Queues: 2})
			if err == nil {
				disk.Become(disk.Work, &model.Hostile{Next: model.FromBytes(lies)})
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
