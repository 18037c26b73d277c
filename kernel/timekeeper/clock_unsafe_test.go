package timekeeper

import (
	"testing"
	"unsafe"
)

// The entry code relies on these offsets: unikernel/overlay/_vm/runtime.
func TestLayout(t *testing.T) {
	var k Keeper
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"sequence", unsafe.Offsetof(k.Clock) + unsafe.Offsetof(k.sequence), 0},
		{"start", unsafe.Offsetof(k.start), 8},
		{"base", unsafe.Offsetof(k.base), 16},
		{"scale", unsafe.Offsetof(k.scale), 24},
		{"Wall", unsafe.Offsetof(k.Wall), 32},
	} {
		if c.got != c.want {
			t.Errorf("%s: at %d, want %d", c.what, c.got, c.want)
		}
	}
}
