package pipe

import (
	"bytes"
	"testing"

	"loam/abi/linux"
)

// The capacity of a pipe can be changed; its bytes stay in order (F_SETPIPE_SZ).
func TestResize(t *testing.T) {
	r, w := newEnds()
	data := make([]byte, 60000)
	for i := range data {
		data[i] = byte(i / 7)
	}
	w.Write(data[:50000])
	got := make([]byte, 40000)
	r.Read(got)
	n, _ := w.Write(data[50000:]) // wraps around the end of the ring
	wrapped := append(make([]byte, 0, 20000), data[40000:]...)
	if n != 10000 || !bytes.Equal(got, data[:40000]) {
		t.Fatalf("%d bytes written", n)
	}
	for _, c := range []struct {
		n          int
		privileged bool
		want       int
		errno      linux.Errno
	}{
		{20001, false, 32768, 0},
		{8192, true, -1, linux.EBUSY},
		{DefaultMaxSize + 1, false, -1, linux.EPERM},
		{DefaultMaxSize + 1, true, 2 * DefaultMaxSize, 0},
		{DefaultMaxSize + DefaultMaxSize/2, false, 2 * DefaultMaxSize, 0}, // allowed without privilege, since the capacity does not grow
		{-1, true, -1, linux.EINVAL},
		{topSize + 1, true, -1, linux.EINVAL},
		{0, true, -1, linux.EBUSY},
		{65536, false, 65536, 0},
	} {
		if got, errno := w.Resize(c.n, Creator{Resource: c.privileged, Unlimited: c.privileged}); got != c.want || errno != c.errno {
			t.Errorf("Resize(%d, %v) = %d, %v, want %d, %v", c.n, c.privileged, got, errno, c.want, c.errno)
		}
	}
	rest := make([]byte, 30000)
	if n, errno := r.Read(rest); errno != 0 || !bytes.Equal(rest[:n], wrapped) {
		t.Errorf("%d bytes are left, with %v: wrong", n, errno)
	}
	if n, errno := w.Resize(1, Creator{}); n != minSize || errno != 0 || r.Capacity() != minSize {
		t.Errorf("%d, %v: want one page", n, errno)
	}
	if n, _ := w.Write(data); n != minSize {
		t.Errorf("%d bytes fit into a page", n)
	}
}

// newEnds returns the ends of a new pipe of a system of its own.
func newEnds() (reader, writer *End) {
	reader, writer, _ = new(System).New(1, Creator{})
	return reader, writer
}
