package vdso

import (
	"testing"
	"unsafe"
)

// TestLayout: the assembler code and the Go type have the same offsets of fields. Safety: only offsets are taken.
func TestLayout(t *testing.T) {
	var d Data
	for name, v := range map[string][2]uintptr{
		"sequence": {unsafe.Offsetof(d.sequence), atSequence},
		"counter":  {unsafe.Offsetof(d.counter), atCounter},
		"start":    {unsafe.Offsetof(d.start), atStart},
		"mult":     {unsafe.Offsetof(d.mult), atMult},
		"shift":    {unsafe.Offsetof(d.shift), atShift},
		"cpu":      {unsafe.Offsetof(d.cpu), atCPU},
		"base":     {unsafe.Offsetof(d.base), atBase},
		"clocks":   {unsafe.Offsetof(d.clocks), atClocks},
		"offset":   {unsafe.Offsetof(d.offset), atOffset},
	} {
		if v[0] != v[1] {
			t.Errorf("%s is at %d, the assembler has %d", name, v[0], v[1])
		}
	}
	if unsafe.Sizeof(d) > pageSize {
		t.Error("the data are larger than a page")
	}
}
