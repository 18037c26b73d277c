package pseudo

import (
	"fmt"
	"testing"

	"loam/fs"
)

// A read at the start of an open file returns new content, and other reads continue in the content that the program has begun to read:
// programs such as top keep files of /proc open.
func TestReadAgain(t *testing.T) {
	version := 0
	n := file{text: func() string { version++; return fmt.Sprintf("version %d", version) }}
	h, err := n.Open(fs.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		offset int64
		want   string
	}{{8, "1"}, {0, "version"}, {8, "2"}, {9, ""}, {0, "version"}, {8, "3"}} {
		b := make([]byte, 7)
		if k, err := h.ReadAt(b, test.offset); err != nil || string(b[:k]) != test.want {
			t.Errorf("at %d: %q, %v, want %q", test.offset, b[:k], err, test.want)
		}
	}
}
