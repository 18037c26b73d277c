package blk_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loam/driver/blk"
	"loam/driver/virtio"
	"loam/driver/virtio/model"
)

const everything = model.DiskSizeMax | model.DiskSegMax | model.DiskBlock | model.DiskFlush | model.DiskDiscard | model.DiskZeroes

const sectors = 1000

// open opens a disk of the model, which is closed with the test and keeps nothing.
func open(t *testing.T, disk *model.Disk, way string, options ...model.Option) *blk.Disk {
	t.Helper()
	m := model.New(options...)
	v := m.Add(t, way, disk.Device, 1)
	d, err := blk.Open(v)
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

// each runs a test for all ways to be there, and all kinds of memory.
func each(t *testing.T, test func(t *testing.T, way string, options ...model.Option)) {
	for way := range model.Ways {
		for name, options := range map[string][]model.Option{"": nil, ", copied": {model.Heapless}} {
			t.Run(way+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, way, options...) })
			})
		}
	}
}

// What is written is read again, whatever its length and place, by many at once.
func TestTransfer(t *testing.T) {
	each(t, func(t *testing.T, way string, options ...model.Option) {
		for _, disk := range []*model.Disk{model.NewDisk(sectors, everything, 512), model.NewDisk(sectors, 0, 0)} {
			disk.Plain = disk.Features&everything == 0
			d := open(t, disk, way, options...)
			if d.Size() != sectors*512 || d.Info().BlockSize != 512 {
				t.Fatalf("%d bytes in blocks of %d", d.Size(), d.Info().BlockSize)
			}
			var all sync.WaitGroup
			const parts = 4
			for part := range parts {
				all.Go(func() {
					rng := rand.New(rand.NewPCG(1, uint64(part)))
					const span = sectors / parts
					want := make([]byte, span*512)
					for range 10 {
						from, n := rng.IntN(span), 1+rng.IntN(span)
						p := make([]byte, 512*min(n, span-from)+1)[1:] // begins inside a page
						for i := range p {
							p[i] = byte(rng.Int())
						}
						copy(want[from*512:], p)
						if n, err := d.WriteAt(p, int64(part*span+from)*512); n != len(p) || err != nil {
							t.Errorf("WriteAt = %d, %v", n, err)
						}
						got := make([]byte, len(want))
						if n, err := d.ReadAt(got, int64(part*span)*512); n != len(got) || err != nil {
							t.Errorf("ReadAt = %d, %v", n, err)
						}
						if !bytes.Equal(got, want) {
							t.Error("what is read is not what was written")
						}
					}
				})
			}
			all.Wait()
		}
	})
}

func TestEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, model.NewDisk(sectors, everything, 1024), "MMIO")
		p := make([]byte, 4096)
		end := d.Size()
		for _, test := range []struct {
			off  int64
			n    int
			want error
		}{{end, 0, io.EOF}, {end, 1024, io.EOF}, {1 << 62, 1024, io.EOF}, {end - 1024, 0, io.EOF}, {-1024, 0, blk.ErrRange}, {512, 0, blk.ErrAlign}} {
			p := p
			if test.n == 0 {
				p = p[:2048]
			}
			if n, err := d.ReadAt(p, test.off); !errors.Is(err, test.want) || n > 1024 {
				t.Errorf("ReadAt(%d) = %d, %v; want %v", test.off, n, err, test.want)
			}
		}
		for off, want := range map[int64]error{end: blk.ErrRange, end - 1024: blk.ErrRange, 1 << 62: blk.ErrRange, -1024: blk.ErrRange, 512: blk.ErrAlign} {
			if _, err := d.WriteAt(p, off); !errors.Is(err, want) {
				t.Errorf("WriteAt(%d): %v, want %v", off, err, want)
			}
			if err := d.WriteZeroes(off, 4096); !errors.Is(err, want) {
				t.Errorf("WriteZeroes(%d): %v, want %v", off, err, want)
			}
		}
	})
}

// Zeros, discards and flushes reach the disk, cut into what it takes.
func TestRanges(t *testing.T) {
	each(t, func(t *testing.T, way string, options ...model.Option) {
		disk := model.NewDisk(sectors, everything, 512)
		d := open(t, disk, way, options...)
		for i := range disk.Data {
			disk.Data[i] = 1
		}
		if err := d.WriteZeroes(512, 200*512); err != nil {
			t.Error(err)
		}
		if err := d.Discard(500*512, 250*512); err != nil {
			t.Error(err)
		}
		if err := d.Flush(); err != nil {
			t.Error(err)
		}
		for sector := range sectors {
			want := byte(1)
			if sector >= 1 && sector < 201 || sector >= 500 && sector < 750 {
				want = 0
			}
			if got := disk.Data[sector*512+511]; got != want {
				t.Fatalf("sector %d has %d, want %d", sector, got, want)
			}
		}
		want := blk.Counters{Flushes: 1, Zeroes: 4, Discards: 3}
		if got := d.Counters(); got != want || disk.Flushed != 1 {
			t.Errorf("%+v, %d flushes; want %+v", got, disk.Flushed, want)
		}
	})
}

func TestLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, model.NewDisk(sectors, model.DiskReadOnly, 0), "MMIO")
		if _, err := d.WriteAt(make([]byte, 512), 0); !errors.Is(err, blk.ErrReadOnly) {
			t.Errorf("WriteAt: %v", err)
		}
		if err := d.Discard(0, 512); !errors.Is(err, blk.ErrUnsupported) {
			t.Errorf("Discard: %v", err)
		}
		if err := d.WriteZeroes(0, 512); !errors.Is(err, blk.ErrUnsupported) {
			t.Errorf("WriteZeroes: %v", err)
		}
		if err := d.Flush(); err != nil {
			t.Errorf("Flush: %v", err)
		}
	})
}

// What the disk could not do is an error of that request only.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := model.NewDisk(sectors, everything, 512)
		disk.Status = func(kind uint32, sector uint64) uint8 { return uint8(min(sector, 3)) }
		d := open(t, disk, "MMIO")
		for sector, want := range []error{nil, blk.ErrIO, blk.ErrUnsupported, blk.ErrIO} {
			if _, err := d.ReadAt(make([]byte, 512), int64(sector)*512); !errors.Is(err, want) {
				t.Errorf("status %d: %v, want %v", sector, err, want)
			}
		}
		if c := d.Counters(); c.Failed != 3 || c.Reads != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// A disk may grow.
func TestResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := model.NewDisk(sectors, everything, 512)
		d := open(t, disk, "PCI, a line")
		disk.Change(func(config []byte) { config[1] = 0xff })
		synctest.Wait()
		if d.Size() != 0xffe8*512 || d.Counters().Resizes != 1 {
			t.Errorf("%d bytes", d.Size())
		}
	})
}

// A disk that does not answer, or answers nonsense, fails all that wait, in bounded
// time, and all that come later.
func TestHostile(t *testing.T) {
	type lie = struct {
		Lie    model.Lie
		Number uint32
	}
	for name, test := range map[string]struct {
		lie   lie
		want  error
		after time.Duration
	}{
		"silence":            {lie{model.Silence, 0}, virtio.ErrTimeout, 30 * time.Second},
		"an id out of range": {lie{model.WrongID, 1 << 30}, virtio.ErrNonsense, 0},
		"another id":         {lie{model.WrongID, 9}, virtio.ErrNonsense, 0},
		"two times":          {lie{model.Twice, 0}, virtio.ErrNonsense, 0},
		"too long":           {lie{model.TooLong, 1}, virtio.ErrNonsense, 0},
		"a jump":             {lie{model.Jump, 50}, virtio.ErrNonsense, 0},
		"broken":             {lie{model.Broken, 0}, virtio.ErrBroken, 0},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, way string, options ...model.Option) {
				disk := model.NewDisk(sectors, everything, 512)
				d := open(t, disk, way, options...)
				disk.Become(disk.Work, &model.Hostile{Next: model.Script(lie(test.lie))})
				start := time.Now()
				p := make([]byte, 512)
				_, err := d.ReadAt(p, 0)
				if err == nil { // the answer was good, what followed was not
					synctest.Wait()
					_, err = d.ReadAt(p, 0)
				}
				if !errors.Is(err, test.want) || time.Since(start) != test.after {
					t.Errorf("ReadAt: %v after %v; want %v after %v", err, time.Since(start), test.want, test.after)
				}
				if _, err := d.WriteAt(p, 0); !errors.Is(err, test.want) {
					t.Errorf("later: %v, want %v", err, test.want)
				}
			})
		})
	}
}

// Close fails what is on the way.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := model.NewDisk(sectors, everything, 512)
		d := open(t, disk, "MMIO")
		disk.Become(nil, nil)
		var waiting sync.WaitGroup
		for range 100 { // more than there are requests
			waiting.Go(func() {
				if _, err := d.ReadAt(make([]byte, 512), 0); !errors.Is(err, virtio.ErrClosed) {
					t.Errorf("ReadAt: %v, want ErrClosed", err)
				}
			})
		}
		synctest.Wait()
		d.Close()
		waiting.Wait()
	})
}

func TestBadConfig(t *testing.T) {
	for name, change := range map[string]func(config []byte){
		"a block of 3 bytes":  func(c []byte) { c[20], c[21] = 3, 0 },
		"a block of 64 KiB":   func(c []byte) { c[21], c[22] = 0, 1 },
		"more than there are": func(c []byte) { c[7] = 1 },
	} {
		synctest.Test(t, func(t *testing.T) {
			disk := model.NewDisk(sectors, everything, 512)
			change(disk.Config)
			m := model.New()
			if _, err := blk.Open(m.Add(t, "MMIO", disk.Device, 1)); !errors.Is(err, virtio.ErrLayout) {
				t.Errorf("%s: %v, want ErrLayout", name, err)
			}
			if m.Held() != 0 {
				t.Errorf("%s: %d bytes are kept", name, m.Held())
			}
		})
	}
}

func TestAllocs(t *testing.T) {
	disk := model.NewDisk(sectors, everything, 512)
	d := open(t, disk, "PCI, a vector for each")
	p := make([]byte, 4096)
	if n := testing.AllocsPerRun(100, func() {
		d.ReadAt(p, 0)
		d.WriteAt(p, 8192)
		d.Flush()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever the disk does, every call returns.
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
			d, err := blk.Open(m.Add(t, "PCI, a line", disk.Device, 1))
			if err == nil {
				disk.Become(disk.Work, &model.Hostile{Next: model.FromBytes(lies)})
				var all sync.WaitGroup
				for i := range int64(3) {
					all.Go(func() {
						p := make([]byte, 8192)
						d.ReadAt(p, i*4096)
						d.WriteAt(p, i*8192)
						d.WriteZeroes(0, 4096)
						d.Flush()
					})
				}
				all.Wait()
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
