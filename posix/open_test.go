package posix

import (
	"sync"
	"testing"

	"loam/abi/linux"
)

// opener returns a function that opens and closes a file three directories below the root.
func opener(t testing.TB) (p *Process, open func(flags int)) {
	p = files(t)
	for _, dir := range []string{"/a", "/a/b", "/a/b/c"} {
		ok(t, p.MkdirAt(linux.AT_FDCWD, dir, 0o755))
	}
	const path = "/a/b/c/file"
	ok(t, p.Close(fd(t)(p.OpenAt(linux.AT_FDCWD, path, create, 0o600))))
	return p, func(flags int) {
		n, errno := p.OpenAt(linux.AT_FDCWD, path, flags, 0)
		if errno == 0 {
			errno = p.Close(n)
		}
		if errno != 0 {
			t.Error(errno)
		}
	}
}

// The file, its open file description and its queue are one object.
func TestOpenAllocates(t *testing.T) {
	_, open := opener(t)
	if n := testing.AllocsPerRun(100, func() { open(linux.O_RDONLY) }); n != 1 {
		t.Errorf("an open and close makes %v allocations, want 1", n)
	}
}

// Threads that open and close files, while others use their descriptors, get files or EBADF.
func TestOpenCloseUse(t *testing.T) {
	p, open := opener(t)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 500 {
				open(linux.O_RDWR)
			}
		})
		all.Go(func() {
			b := make([]byte, 1)
			for i := range 500 {
				if _, errno := p.Read(i%3, b); errno != 0 && errno != linux.EBADF {
					t.Error(errno)
				}
				if st, errno := p.Fstat(i % 3); errno == 0 && st.Mode == 0 {
					t.Error("fstat of a file without a mode")
				}
				if again, errno := p.Dup(i % 3); errno == 0 {
					p.Close(again)
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkOpenClose opens and closes a file.
func BenchmarkOpenClose(b *testing.B) {
	_, open := opener(b)
	b.ReportAllocs()
	for b.Loop() {
		open(linux.O_RDONLY)
	}
}

// BenchmarkStatAt reads the attributes of a file.
func BenchmarkStatAt(b *testing.B) {
	p, _ := opener(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, errno := p.StatAt(linux.AT_FDCWD, "/a/b/c/file", 0); errno != 0 {
			b.Fatal(errno)
		}
	}
}
