package machinecode

import (
	"bytes"
	"testing"
)

// A displacement is relative to the end of its instruction, for labels before and after it, and outside the code.
func TestLink(t *testing.T) {
	var c Code
	c.Label("start")
	c.To("end", 0xe9)
	c.To("start", 0xe9)
	c.To("data", 0x48, 0x8d, 0x05)
	c.Label("end")
	c.Emit32(0x01020304, 0xb8)
	c.Emit64(0x05060708, 0x48, 0xb8)
	c.Link(map[string]int{"data": 0x1000})
	want := []byte{
		0xe9, 12, 0, 0, 0,
		0xe9, 0xf6, 0xff, 0xff, 0xff,
		0x48, 0x8d, 0x05, 0xef, 0x0f, 0, 0,
		0xb8, 4, 3, 2, 1,
		0x48, 0xb8, 8, 7, 6, 5, 0, 0, 0, 0,
	}
	if !bytes.Equal(c.Bytes, want) {
		t.Errorf("% x", c.Bytes)
	}
}

// Link panics if a label is not defined.
func TestNoLabel(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	var c Code
	c.To("nowhere", 0xe9)
	c.Link(nil)
}
