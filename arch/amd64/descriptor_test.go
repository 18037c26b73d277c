package amd64

import "testing"

// A gate contains the handler's address in three parts: SDM volume 3, figure 6-8.
func TestGate(t *testing.T) {
	g := NewGate(0x1122334455667788, 3)
	if g != (Gate{0x5566_8e03_0008_7788, 0x11223344}) {
		t.Errorf("%#x", g)
	}
}

// The base of the task state segment is split across its descriptor: SDM volume 3, figure 8-4.
func TestGDT(t *testing.T) {
	d := NewGDT(0x1122334455667788)
	if d[TaskSelector>>3] != 0x5500_8966_7788_0067 || d[TaskSelector>>3+1] != 0x11223344 {
		t.Errorf("%#x", d)
	}
	if d[0] != 0 {
		t.Error("the null descriptor is not null")
	}
}

// The segments of ring 3 differ from those of ring 0 only in their privilege level, and have the selectors that
// SYSRET loads: SDM volume 2, SYSRET.
func TestUserSegments(t *testing.T) {
	const level3 = 3 << 45
	d := NewGDT(0)
	if d[UserCodeSelector>>3] != d[CodeSelector>>3]|level3 || d[UserDataSelector>>3] != d[DataSelector>>3]|level3 {
		t.Errorf("%#x", d)
	}
	if UserBase+8 != UserDataSelector || UserBase+16 != UserCodeSelector {
		t.Error("SYSRET loads other selectors")
	}
	if g := NewGate(0, 1).ForUser(); g[0]>>45&3 != 3 {
		t.Errorf("%#x", g)
	}
}
