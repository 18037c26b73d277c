package file

import (
	"runtime"
	"slices"
	"testing"
)

// BenchmarkTableFork measures what a fork and an exit do with the descriptor table of a process with three files.
func BenchmarkTableFork(b *testing.B) {
	d := tableOf(0, 1, 2)
	b.ReportAllocs()
	for b.Loop() {
		d.Copy().RemoveAll()
	}
}

// tableOf returns a table in which the given descriptors are open.
func tableOf(fds ...int) *Table {
	d := &Table{}
	o := NewDescription(nil, 0)
	for _, fd := range fds {
		d.Replace(o, fd, fd%2 == 1)
	}
	return d
}

func TestTableCopy(t *testing.T) {
	fds := []int{0, 63, 64, chunkSize, MaxDescriptors - 1}
	d := tableOf(fds...)
	c := d.Copy()
	if got := c.List(); !slices.Equal(got, fds) {
		t.Fatalf("the copy has the descriptors %v, want %v", got, fds)
	}
	for _, fd := range fds {
		if c.Get(fd) != d.Get(fd) || c.Cloexec(fd) != (fd%2 == 1) {
			t.Errorf("descriptor %d of the copy differs", fd)
		}
	}
	c.Remove(64)
	if d.Get(64) == nil || c.Get(64) != nil {
		t.Error("a descriptor closed in the copy is closed in the table, or is still open in the copy")
	}
	if d.Get(chunkSize*2) != nil || d.Get(-1) != nil || d.Get(MaxDescriptors) != nil {
		t.Error("a descriptor that was never opened is open")
	}
	if d.RemoveIf(0, NewDescription(nil, 0)) == 0 || d.Get(0) == nil {
		t.Error("a descriptor of another description has been closed")
	}
	if o := d.Get(0); d.RemoveIf(0, o) != 0 || d.Get(0) != nil || d.RemoveIf(0, o) == 0 {
		t.Error("a descriptor of the description has not been closed, or is closed twice")
	}
	if d.Remove(-1) == 0 || d.Remove(MaxDescriptors) == 0 {
		t.Error("a descriptor that was never opened can be closed")
	}
}

// TestSmallTable checks that the copy of a table with few descriptors is small: each fork makes one.
func TestSmallTable(t *testing.T) {
	d := tableOf(0, 1, 2)
	const copies, most = 1000, 20 << 10 // most: bytes for one chunk and the table
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range copies {
		d.Copy()
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / copies; n > most {
		t.Errorf("a copy of a table with three descriptors takes %d bytes, want at most %d", n, most)
	}
}
