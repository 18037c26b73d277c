package rng_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loam/driver/rng"
	"loam/driver/virtio"
	"loam/driver/virtio/model"
)

// source returns a model that provides the bytes 1, 2, 3 and so on, up to 100 at a time.
func source() *model.Device {
	next := byte(0)
	return &model.Device{Kind: 4, Work: func(d *model.Device) {
		q := d.Queues[0]
		for c := q.Take(); c != nil; c = q.Take() {
			b := make([]byte, min(100, c.InLen()))
			for i := range b {
				next++
				b[i] = next
			}
			q.Done(c, c.Scatter(0, b))
		}
	}}
}

func openModel(t *testing.T, d *model.Device, way string) *rng.Device {
	t.Helper()
	m := model.New()
	r, err := rng.Open(m.Add(t, way, d, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if n := m.Held(); n != 0 {
			t.Errorf("%d bytes of memory are kept", n)
		}
	})
	return r
}

// Read fills its buffer even if the device returns few bytes at a time.
func TestRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := openModel(t, source(), "MMIO")
		p, want := make([]byte, 1000), make([]byte, 1000)
		for i := range want {
			want[i] = byte(i + 1)
		}
		if n, err := r.Read(p); n != len(p) || err != nil || !bytes.Equal(p, want) {
			t.Errorf("Read = %d, %v", n, err)
		}
	})
}

// If a device does not respond or responds incorrectly, this Read and all later ones return an error within a
// limited time.
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
		"silence":            {lie{model.Silence, 0}, virtio.ErrTimeout, 10 * time.Second},
		"nothing":            {lie{model.Written, 0}, virtio.ErrNonsense, 0},
		"too much":           {lie{model.TooLong, 500}, virtio.ErrNonsense, 0},
		"an id out of range": {lie{model.WrongID, 2}, virtio.ErrNonsense, 0},
		"an index ahead":     {lie{model.Jump, 2}, virtio.ErrNonsense, 0},
	} {
		for way := range model.Ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := source()
					r := openModel(t, d, way)
					d.Become(d.Work, &model.Hostile{Next: model.Script(lie(test.lie))})
					start := time.Now()
					_, err := r.Read(make([]byte, 100))
					if !errors.Is(err, test.want) || time.Since(start) != test.after {
						t.Errorf("Read: %v after %v; want %v after %v", err, time.Since(start), test.want, test.after)
					}
					if _, again := r.Read(make([]byte, 100)); !errors.Is(again, test.want) || time.Since(start) != test.after {
						t.Errorf("later: %v, want %v at once", again, test.want)
					}
				})
			})
		}
	}
}

// Close unblocks Read.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := source()
		d.Work = nil
		r := openModel(t, d, "PCI, a line")
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				if _, err := r.Read(make([]byte, 1)); !errors.Is(err, virtio.ErrClosed) {
					t.Errorf("Read: %v", err)
				}
			})
		}
		synctest.Wait()
		r.Close()
		waiting.Wait()
	})
}

func FuzzDevice(f *testing.F) {
	f.Add([]byte{0, 0, 3, 7, 5, 1})
	f.Fuzz(func(t *testing.T, lies []byte) {
		synctest.Test(t, func(t *testing.T) {
			d := source()
			r := openModel(t, d, "PCI, one vector")
			d.Become(d.Work, &model.Hostile{Next: model.FromBytes(lies)})
			r.Read(make([]byte, 2000))
		})
	})
}
