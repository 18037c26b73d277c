package amd64

import "testing"

// A gate holds the handler's address in three pieces: SDM volume 3, figure 6-8.
func TestGate(t *testing.T) {
	g := NewGate(0x1122334455667788, 3)
	if g != (Gate{0x5566_8e03_0008_7788, 0x11223344}) {
		t.Errorf("%#x", g)
	}
}

// The base of the task is spread over its descriptor: SDM volume 3, figure 8-4.
func TestGDT(t *testing.T) {
	d := NewGDT(0x1122334455667788)
	if d[TaskSelector>>3] != 0x5500_8966_7788_0067 || d[TaskSelector>>3+1] != 0x11223344 {
		t.Errorf("%#x", d)
	}
	if d[0] != 0 {
		t.Error("the null descriptor is not null")
	}
}
