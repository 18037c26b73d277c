package ring

import (
	"testing"

	"loam/link"
)

func frames(n int) []*link.Frame {
	fs := make([]*link.Frame, n)
	for i := range fs {
		fs[i] = link.NewFrame(60)
	}
	return fs
}

func rings(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func send(t *testing.T, r *Ring, n, want int) {
	t.Helper()
	fs := frames(n)
	got, err := r.Send(fs)
	if got != want || err != nil {
		t.Fatalf("Send of %d = %d, %v; want %d", n, got, err, want)
	}
	link.FreeAll(fs[got:])
}

func poll(t *testing.T, r *Ring, n, want int) {
	t.Helper()
	fs := make([]*link.Frame, n)
	got, err := r.Poll(fs)
	if got != want || err != nil {
		t.Fatalf("Poll of %d = %d, %v; want %d", n, got, err, want)
	}
	link.FreeAll(fs[:got])
}

// Room is signalled only after a Send that did not take all frames, once a quarter of the ring is
// free.
func TestRoom(t *testing.T) {
	r := New(8)
	send(t, r, 8, 8)
	poll(t, r, 8, 8)
	if rings(r.Room()) {
		t.Error("rang for a sender that never came up short")
	}
	send(t, r, 9, 8)
	poll(t, r, 1, 1)
	if rings(r.Room()) {
		t.Error("rang with one place of 8 free")
	}
	poll(t, r, 1, 1)
	if !rings(r.Room()) {
		t.Error("did not ring with a quarter free")
	}
	poll(t, r, 8, 6)
	if rings(r.Room()) {
		t.Error("rang twice for one short Send")
	}
	r.Close()
}

// Ready is signalled once for a receiver that found the ring empty, not for each Send.
func TestReady(t *testing.T) {
	r := New(8)
	send(t, r, 1, 1)
	if rings(r.Ready()) {
		t.Error("rang for a receiver that was not parked")
	}
	poll(t, r, 8, 1)
	poll(t, r, 8, 0)
	send(t, r, 1, 1)
	send(t, r, 1, 1)
	if !rings(r.Ready()) {
		t.Error("did not ring for a parked receiver")
	}
	if rings(r.Ready()) {
		t.Error("rang twice")
	}
	r.Close()
}

// The ring preserves the order of frames when it wraps around, for all batch sizes.
func TestOrder(t *testing.T) {
	link.Track(true)
	defer link.Track(false)
	r := New(5) // rounded up to 8 slots
	next, want := 0, 0
	for step := range 1000 {
		fs := frames(step % 7)
		for i, f := range fs {
			f.GSOSize = uint16(next + i)
		}
		n, _ := r.Send(fs)
		link.FreeAll(fs[n:])
		next += n
		got := make([]*link.Frame, step%5)
		if len(got) == 0 {
			continue
		}
		n, _ = r.Poll(got)
		for _, f := range got[:n] {
			if int(f.GSOSize) != want {
				t.Fatalf("frame %d came in place of %d", f.GSOSize, want)
			}
			want++
		}
		link.FreeAll(got[:n])
	}
	if r.len() != next-want {
		t.Errorf("%d frames are left, want %d", r.len(), next-want)
	}
	r.Close()
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are leaked", n)
	}
}
