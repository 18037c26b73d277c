package console_test

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"loam/driver/console"
	"loam/driver/virtio"
	"loam/driver/virtio/model"
)

// echo returns the model of a console that sends all output back as input.
func echo() *model.Device {
	return &model.Device{Kind: 3, Features: 1, Config: []byte{80, 0, 25, 0, 0, 0, 0, 0, 0, 0, 0, 0}, Work: work}
}

// work processes the queues of the simulated console: it copies output to input while the driver has posted buffers.
func work(d *model.Device) {
	in, out := d.Queues[0], d.Queues[1]
	for {
		to := in.Take()
		if to == nil {
			return
		}
		from := out.Take()
		if from == nil {
			in.Untake(1)
			return
		}
		b := make([]byte, from.OutLen())
		from.Gather(0, b)
		out.Done(from, 0)
		in.Done(to, to.Scatter(0, b))
	}
}

// The console's driver does not use the feature EVENT_IDX (event indices), for the reason in the comment of Open.
func TestNoEventIndex(t *testing.T) {
	const eventIndex = 1 << 29
	for way := range model.Ways {
		d := echo()
		open(t, d, way)
		if d.Accepted()&eventIndex != 0 {
			t.Errorf("%s: the driver accepts event indices", way)
		}
	}
}

func open(t *testing.T, d *model.Device, way string) *console.Device {
	t.Helper()
	m := model.New()
	c, err := console.Open(m.Add(t, way, d, 2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if n := m.Held(); n != 0 {
			t.Errorf("%d bytes of memory are kept", n)
		}
	})
	return c
}

func each(t *testing.T, test func(t *testing.T, way string)) {
	for way := range model.Ways {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, way) })
		})
	}
}

// Written bytes are read back in order, while reading and writing run concurrently.
func TestEcho(t *testing.T) {
	each(t, func(t *testing.T, way string) {
		c := open(t, echo(), way)
		want := make([]byte, 100_000)
		for i := range want {
			want[i] = byte(i * 13 >> 4)
		}
		var writer sync.WaitGroup
		writer.Go(func() {
			if n, err := c.Write(want); n != len(want) || err != nil {
				t.Errorf("Write = %d, %v", n, err)
			}
		})
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("ReadFull: %v, equal: %v", err, bytes.Equal(got, want))
		}
		writer.Wait()
		if received, sent := c.Counters(); received != 100_000 || sent != 100_000 {
			t.Errorf("%d bytes in, %d out", received, sent)
		}
	})
}

func TestSize(t *testing.T) {
	each(t, func(t *testing.T, way string) {
		d := echo()
		c := open(t, d, way)
		if w, h := c.Size(); w != 80 || h != 25 {
			t.Errorf("%d by %d", w, h)
		}
		d.Change(func(config []byte) { config[0] = 132 })
		<-c.Resized()
		if w, h := c.Size(); w != 132 || h != 25 {
			t.Errorf("%d by %d", w, h)
		}
	})
}

// Close unblocks Read and Write. Before that, it waits up to drainBound for output to be accepted.
func TestClose(t *testing.T) {
	each(t, func(t *testing.T, way string) {
		d := echo()
		d.Work = func(*model.Device) {}
		c := open(t, d, way)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, virtio.ErrClosed) {
				t.Errorf("Read: %v", err)
			}
		})
		waiting.Go(func() {
			if n, err := c.Write(make([]byte, 100_000)); !errors.Is(err, virtio.ErrClosed) || n != 32768 {
				t.Errorf("Write: %d, %v", n, err)
			}
		})
		time.Sleep(time.Hour) // a slow terminal is not an error
		c.Close()
		waiting.Wait()

		quiet := open(t, &model.Device{Kind: 3, Work: func(*model.Device) {}}, way)
		quiet.Write([]byte("last words"))
		start := time.Now()
		quiet.Close()
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

// Flush returns when the device has accepted all output, and not before.
func TestFlush(t *testing.T) {
	each(t, func(t *testing.T, way string) {
		var taken atomic.Int64
		var slow atomic.Bool
		c := open(t, &model.Device{Kind: 3, Work: func(d *model.Device) {
			for !slow.Load() {
				from := d.Queues[1].Take()
				if from == nil {
					return
				}
				taken.Add(int64(from.OutLen()))
				d.Queues[1].Done(from, 0)
			}
		}}, way)
		c.Write(make([]byte, 10_000))
		if err := c.Flush(); err != nil || taken.Load() != 10_000 {
			t.Errorf("%d bytes are taken, %v", taken.Load(), err)
		}
		slow.Store(true)
		c.Write([]byte("x"))
		flushed := make(chan error, 1)
		go func() { flushed <- c.Flush() }()
		time.Sleep(time.Hour)
		if len(flushed) > 0 {
			t.Error("Flush returned before the device had it all")
		}
		c.Close()
		if err := <-flushed; !errors.Is(err, virtio.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// An invalid completion makes all later calls fail.
func TestHostile(t *testing.T) {
	type lie = struct {
		Lie    model.Lie
		Number uint32
	}
	for name, l := range map[string]lie{
		"an id out of range": {model.WrongID, 1 << 20}, "too long": {model.TooLong, 600},
		"two times": {model.Twice, 0}, "a jump": {model.Jump, 100}, "broken": {model.Broken, 0},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, way string) {
				d := echo()
				c := open(t, d, way)
				d.Become(work, &model.Hostile{Next: model.Script(lie(l))})
				var err error
				for range 10 {
					if _, err = c.Write([]byte("x")); err != nil {
						break
					}
					synctest.Wait()
					if _, err = c.Read(make([]byte, 1)); err != nil {
						break
					}
				}
				if !errors.Is(err, virtio.ErrNonsense) && !errors.Is(err, virtio.ErrBroken) {
					t.Fatalf("got %v", err)
				}
				if _, again := c.Read(make([]byte, 1)); again == nil || again.Error() != err.Error() {
					t.Errorf("later: %v, want %v", again, err)
				}
			})
		})
	}
}

func FuzzConsole(f *testing.F) {
	f.Add([]byte{0, 0, 3, 100, 6, 0, 7, 0})
	f.Add([]byte{10, 0, 9, 3, 2, 255})
	f.Fuzz(func(t *testing.T, lies []byte) {
		synctest.Test(t, func(t *testing.T) {
			d := echo()
			c := open(t, d, "PCI, a line")
			d.Become(work, &model.Hostile{Next: model.FromBytes(lies)})
			var both sync.WaitGroup
			both.Go(func() { c.Write(make([]byte, 20_000)) })
			both.Go(func() { io.Copy(io.Discard, c) })
			time.Sleep(time.Minute)
			c.Close()
			both.Wait()
		})
	})
}
