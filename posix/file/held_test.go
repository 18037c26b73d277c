package file

import "testing"

// holder is a file that holds data.
type holder struct{ File }

func (holder) Held() int64 { return 1 << 20 }

// Close does nothing: the File inside is nil.
func (holder) Close() {}

// The data of a file counts for each table with its part of the references.
func TestHeld(t *testing.T) {
	var empty, first, second Table
	o := NewDescription(holder{}, 0)
	for i, d := range []*Table{&first, &first, &second} {
		if _, errno := d.Insert(o, 0, 10, false); errno != 0 {
			t.Fatalf("descriptor %d: %v", i, errno)
		}
	}
	part := int64(1<<20) / 3
	for name, c := range map[string]struct {
		d           *Table
		least, most int64
	}{"empty": {&empty, 1 << 10, 1 << 14}, "two of three": {&first, 2 * part, 2*part + 1<<15}, "one of three": {&second, part, part + 1<<15}} {
		if got := c.d.Held(); got < c.least || got > c.most {
			t.Errorf("%s: %d bytes, want %d to %d", name, got, c.least, c.most)
		}
	}
	first.Share()
	if got := first.Held(); got < part || got > part+1<<15 {
		t.Errorf("a table of two processes: %d bytes for each", got)
	}
}
