package pipe

import (
	"testing"

	"loam/abi/linux"
	"loam/posix/file"
)

// A read from a full pipe notifies the writers when a page becomes free, and not before.
func TestReadNotifiesWriters(t *testing.T) {
	r, w := newEnds()
	w.Write(make([]byte, Size))
	notified := 0
	watch := file.Watch{Notify: func(e file.Events) { notified++ }}
	w.Queue().Add(&watch)
	defer w.Queue().Remove(&watch)
	for _, c := range []struct{ n, want int }{{1, 0}, {pageSize - 2, 0}, {1, 1}, {pageSize, 1}} {
		if r.Read(make([]byte, c.n)); notified != c.want {
			t.Errorf("after a read of %d bytes, the writers had %d notifications, want %d", c.n, notified, c.want)
		}
	}
}

// broken is a file whose second read fails.
type broken struct {
	file.File
	reads int
}

func (f *broken) Read(b []byte) (int, linux.Errno) {
	if f.reads++; f.reads > 1 {
		return -1, linux.EIO
	}
	return 10, 0
}

// splice returns the number of bytes before an error.
func TestSpliceBeforeError(t *testing.T) {
	_, w := newEnds()
	from := Spliced{Description: file.NewDescription(&broken{}, linux.O_RDONLY)}
	if n, errno := w.fillFrom(from, 100); n != 10 || errno != 0 || w.Buffered() != 10 {
		t.Errorf("%d, %v, and the pipe has %d bytes; want 10", n, errno, w.Buffered())
	}
}

// The buffer of a pipe counts for both ends together.
func TestHeld(t *testing.T) {
	r, w := newEnds()
	w.Write(make([]byte, Size))
	if sum := r.Held() + w.Held(); sum != Size {
		t.Errorf("a full pipe holds %d bytes, want %d", sum, Size)
	}
	r.pipe.mu.Lock() // splice(2) holds the lock while it writes to a file
	defer r.pipe.mu.Unlock()
	if sum := r.Held() + w.Held(); sum != Size {
		t.Errorf("a pipe that is in use holds %d bytes, want %d", sum, Size)
	}
}
