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
