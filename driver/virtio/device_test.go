package virtio_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"loam/driver"
	"loam/driver/virtio"
	"loam/driver/virtio/model"
)

// echo returns a device that copies the bytes that it reads to the bytes that it may write.
func echo() *model.Device {
	return &model.Device{Kind: 4, Config: make([]byte, 16), Work: func(d *model.Device) {
		for _, q := range d.Queues {
			for c := q.Take(); c != nil; c = q.Take() {
				b := make([]byte, c.OutLen())
				c.Gather(0, b)
				q.Done(c, c.Scatter(0, b))
			}
		}
	}}
}

// each runs a test with every way to attach a device, in fake time.
func each(t *testing.T, test func(t *testing.T, way string)) {
	for way := range model.Ways {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, way) })
		})
	}
}

func spec(i, size int) virtio.QueueSpec {
	return virtio.QueueSpec{Index: i, Size: size, Indirect: true}
}

// A chain is completed on every queue, and after Close no memory is in use.
func TestDevice(t *testing.T) {
	each(t, func(t *testing.T, way string) {
		for _, plain := range []bool{false, true} {
			m := model.New()
			d := echo()
			d.Plain = plain
			v := m.Add(t, way, d, 3)
			if err := v.Negotiate(0, virtio.EventIndex|virtio.Indirect); err != nil {
				t.Fatal(err)
			}
			if v.Has(virtio.EventIndex) == plain {
				t.Error("EVENT_IDX is not what the device offers")
			}
			queues, err := v.SetUp(spec(0, 1024), spec(1, 1024), spec(2, 1024))
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Start(); err != nil {
				t.Fatal(err)
			}
			buffer, err := m.Allocate(64, 8)
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range queues {
				if q.Size() != 256 {
					t.Errorf("queue of %d descriptors, the device has room for 256", q.Size())
				}
				copy(buffer.Bytes, "question")
				head := q.Add([]driver.Segment{{Address: buffer.Address, Size: 4}, {Address: buffer.Address + 4, Size: 4}},
					[]driver.Segment{{Address: buffer.Address + 16, Size: 5}, {Address: buffer.Address + 32, Size: 5}})
				q.Kick()
				if err := q.Wait(1, nil); err != nil {
					t.Fatal(err)
				}
				got, written, ok, err := q.Take()
				if got != head || written != 8 || !ok || err != nil {
					t.Fatalf("Take = %d, %d, %v, %v", got, written, ok, err)
				}
				if s := string(buffer.Bytes[16:21]) + string(buffer.Bytes[32:35]); s != "question" {
					t.Errorf("the answer is %q", s)
				}
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			m.Free(buffer)
			if m.Held() != 0 {
				t.Errorf("%d bytes are kept", m.Held())
			}
			if !errors.Is(v.Err(), virtio.ErrClosed) {
				t.Errorf("Err = %v", v.Err())
			}
		}
	})
}

// A configuration that changes while it is read is read again, a limited number of times.
func TestConfig(t *testing.T) {
	each(t, func(t *testing.T, way string) {
		m, d := model.New(), echo()
		copy(d.Config, []byte{1, 2, 3, 4, 5, 6, 7, 8})
		d.Hostile = &model.Hostile{}
		v := m.Add(t, way, d, 1)
		var got uint64
		read := func(c virtio.Config) { got = c.U64(0) }
		if err := v.ReadConfig(8, read); err != nil || got != 0x0807060504030201 {
			t.Errorf("read %#x, %v", got, err)
		}
		d.Hostile.ConfigMoves = true
		if err := v.ReadConfig(8, read); !errors.Is(err, virtio.ErrLayout) {
			t.Errorf("a configuration that moves: %v", err)
		}
		if err := v.ReadConfig(1<<20, read); !errors.Is(err, virtio.ErrLayout) {
			t.Errorf("a configuration that is too short: %v", err)
		}
	})
}

// The driver is notified when the configuration changes and when the device fails.
func TestChanged(t *testing.T) {
	each(t, func(t *testing.T, way string) {
		m, d := model.New(), echo()
		v := open(t, m, way, d)
		defer v.Close()
		d.Change(func(config []byte) { config[0] = 1 })
		<-v.Changed()
		if err := v.Check(); err != nil {
			t.Errorf("Check: %v", err)
		}
		d.Break()
		<-v.Changed()
		if err := v.Check(); !errors.Is(err, virtio.ErrBroken) {
			t.Errorf("Check: %v, want ErrBroken", err)
		}
		if !errors.Is(v.Err(), virtio.ErrBroken) {
			t.Errorf("Err: %v, want ErrBroken", v.Err())
		}
	})
}

func open(t *testing.T, m *model.Machine, way string, d *model.Device) *virtio.Device {
	t.Helper()
	v := m.Add(t, way, d, 1)
	if err := v.Negotiate(0, virtio.EventIndex); err != nil {
		t.Fatal(err)
	}
	if _, err := v.SetUp(virtio.QueueSpec{Size: 16}); err != nil {
		t.Fatal(err)
	}
	if err := v.Start(); err != nil {
		t.Fatal(err)
	}
	return v
}

// A device that cannot be used is rejected with the right error within a limited time, and no memory stays in use.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(d *model.Device)
		want  error
	}{
		"no VERSION_1":       {func(d *model.Device) { d.Features &^= 1 << 32 }, virtio.ErrLegacy},
		"needed feature":     {func(d *model.Device) { d.Features &^= 1 << 5 }, virtio.ErrFeatures},
		"refuses features":   {func(d *model.Device) { d.Hostile = &model.Hostile{RefusesFeatures: true} }, virtio.ErrFeatures},
		"queue without room": {func(d *model.Device) { d.MaxQueue = 1 }, virtio.ErrQueue},
		"too few queues":     {func(d *model.Device) { d.Queues = d.Queues[:1] }, virtio.ErrQueue},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, way string) {
				m, d := model.New(), echo()
				d.Features = 1 << 5
				v := m.Add(t, way, d, 2)
				test.spoil(d)
				if d.MaxQueue == 1 {
					d.Queues[0].Shrink(1)
				}
				err := v.Negotiate(1<<5, 0)
				if err == nil {
					_, err = v.SetUp(spec(0, 16), spec(1, 16))
				}
				if !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				if m.Held() != 0 {
					t.Errorf("%d bytes are kept", m.Held())
				}
			})
		})
	}
}

// Close of a device that does not reset returns after resetBound. The memory of its queues is not reused, unless
// the bus blocks the device's accesses.
func TestNeverResets(t *testing.T) {
	each(t, func(t *testing.T, way string) {
		m, d := model.New(), echo()
		v := open(t, m, way, d)
		d.Become(nil, &model.Hostile{NeverResets: true})
		err := v.Close()
		if way == "MMIO" {
			if !errors.Is(err, virtio.ErrReset) || m.Held() == 0 {
				t.Errorf("Close: %v, %d bytes are kept", err, m.Held())
			}
		} else if err != nil || m.Held() != 0 {
			t.Errorf("Close: %v, %d bytes are kept", err, m.Held())
		}
		if again := v.Close(); again != err {
			t.Errorf("Close again: %v, want %v", again, err)
		}
	})
}

// If a device does not respond, the method Wait returns after the time limit.
func TestWaitBound(t *testing.T) {
	each(t, func(t *testing.T, way string) {
		m, d := model.New(), echo()
		d.Hostile = &model.Hostile{Next: model.FromBytes([]byte{byte(model.Silence), 0})}
		v := m.Add(t, way, d, 1)
		v.Negotiate(0, 0)
		queues, err := v.SetUp(spec(0, 4))
		if err != nil {
			t.Fatal(err)
		}
		v.Start()
		defer v.Close()
		b, _ := m.Allocate(8, 8)
		queues[0].Add(nil, []driver.Segment{{Address: b.Address, Size: 8}})
		queues[0].Kick()
		if err := queues[0].Wait(1e9, nil); !errors.Is(err, virtio.ErrTimeout) {
			t.Errorf("Wait: %v, want ErrTimeout", err)
		}
		done := make(chan struct{})
		close(done)
		if err := queues[0].Wait(1e9, done); !errors.Is(err, virtio.ErrClosed) {
			t.Errorf("Wait: %v, want ErrClosed", err)
		}
	})
}

// Arbitrary register values lead to an error or a working device, never to a panic.
func FuzzProbe(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, false)
	f.Add([]byte{0xff}, true)
	f.Fuzz(func(t *testing.T, script []byte, overPCI bool) {
		synctest.Test(t, func(t *testing.T) {
			way := "MMIO"
			if overPCI {
				way = "PCI, a vector for each"
			}
			d := echo()
			var mu sync.Mutex // guards script, because interrupts read registers on another goroutine
			d.Hostile = &model.Hostile{Read: func(at, width int, v uint64) uint64 {
				mu.Lock()
				defer mu.Unlock()
				if len(script) < 2 {
					return v
				}
				lie, with := script[0], uint64(script[1])
				script = script[1:]
				switch lie % 4 {
				case 0:
					return v
				case 1:
					return with
				case 2:
					return ^uint64(0)
				}
				return v ^ with
			}}
			v, err := model.Ways[way](model.New(), d, 2)
			defer d.Close()
			if err != nil {
				return
			}
			if v.Negotiate(0, virtio.EventIndex|virtio.Indirect) != nil {
				return
			}
			if _, err := v.SetUp(spec(0, 16), spec(1, 16)); err != nil {
				return
			}
			if v.Start() == nil {
				v.Check()
				v.Close()
			}
		})
	})
}

func TestParseCommandLine(t *testing.T) {
	text := "console=ttyS0 virtio_mmio.device=512@0xfeb00e00:12 virtio_mmio.device=4K@0xd0000000:5:0 " +
		"virtio_mmio.device=@1:2 virtio_mmio.device=4K@0x3:5 virtio_mmio.device=99G@0x1000:5 virtio_mmio.device=512@x:1 quiet"
	want := []virtio.MMIO{
		{Address: 0xfeb00e00, Size: 512, GSI: 12, Trigger: driver.EdgeHigh},
		{Address: 0xd0000000, Size: 4096, GSI: 5, Trigger: driver.EdgeHigh},
	}
	got := virtio.ParseCommandLine(text)
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func FuzzParseCommandLine(f *testing.F) {
	f.Add("virtio_mmio.device=512@0xfeb00e00:12:1")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range virtio.ParseCommandLine(text) {
			if d.Size <= 0 || d.Size > 1<<20 || d.Address%4 != 0 || !strings.Contains(text, "virtio_mmio.device=") {
				t.Errorf("%q: %+v", text, d)
			}
		}
	})
}
