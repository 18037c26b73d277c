package procfs

import (
	"strings"
	"testing"
)

// Slab is the sum of SReclaimable and SUnreclaim, as on Linux. SUnreclaim counts the objects that the last garbage
// collection has left.
func TestMeminfoHeap(t *testing.T) {
	text := (&Figures{Total: 64 << 20, Heap: 5 << 20, HeapLive: 3<<20 + 1}).Meminfo()
	for _, want := range []string{
		"Slab:               5120 kB\n", "SReclaimable:       2048 kB\n", "SUnreclaim:         3072 kB\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
}

// Slab is at most the memory that neither processes nor files use: an object of the heap that has not been written to has no memory.
// sar(1) showed a negative number of kilobytes in use.
func TestMeminfoUnwrittenHeap(t *testing.T) {
	f := &Figures{Total: 64 << 20, Free: 60 << 20, Private: 256, Files: 128, Heap: 5 << 20, HeapLive: 4 << 20}
	f.UserPages.Tables = 64
	text := f.Meminfo()
	for _, want := range []string{
		"Slab:               2304 kB\n", "SReclaimable:          0 kB\n", "SUnreclaim:         2304 kB\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
}
