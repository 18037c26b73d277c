package signal

import (
	"testing"

	"loam/arch/amd64"
)

// Signals that a fault of the thread raises (SIGSEGV and others) are delivered before other signals, and low numbers
// before high ones.
func TestFirst(t *testing.T) {
	for _, c := range []struct {
		set  Set
		want Number
	}{
		{0, 0},
		{Of(1), 1},
		{Of(64) | Of(30), 30},
		{Of(2) | Of(Segment), Segment},
		{Of(Trap) | Of(Segment), Trap},
	} {
		if got := c.set.First(); got != c.want {
			t.Errorf("%#x: %d, want %d", c.set, got, c.want)
		}
	}
}

func TestEffect(t *testing.T) {
	for _, c := range []struct {
		handler uint64
		n       Number
		want    Effect
	}{
		{Default, 2, End}, {Default, Segment, End}, {Default, Kill, End},
		{Default, Urgent, None}, {Default, Child, None}, {Default, Stop, None},
		{Ignore, 2, None}, {0x1000, 2, Handle}, {0x1000, Urgent, Handle},
	} {
		if got := (&Action{Handler: c.handler}).Effect(c.n); got != c.want {
			t.Errorf("signal %d with handler %#x: %d, want %d", c.n, c.handler, got, c.want)
		}
	}
}

// A handler blocks its own signal unless SA_NODEFER is set. SIGKILL and SIGSTOP can never be blocked.
func TestMasks(t *testing.T) {
	a := Action{Mask: Of(5) | Of(Kill)}
	if got := a.Blocked(10, Of(1)); got != Of(1)|Of(5)|Of(10) {
		t.Errorf("in the handler: %#x", got)
	}
	a.Flags = FlagNoDefer
	if got := a.Blocked(10, 0); got != Of(5) {
		t.Errorf("with SA_NODEFER: %#x", got)
	}
	for _, c := range []struct {
		how  int
		want Set
	}{{Block, Of(1) | Of(2) | Of(3)}, {Unblock, Of(1)}, {SetMask, Of(2) | Of(3)}} {
		got, ok := Change(Of(1)|Of(2), c.how, Of(2)|Of(3)|Of(Kill)|Of(Stop))
		if !ok || got != c.want {
			t.Errorf("how %d: %#x, want %#x", c.how, got, c.want)
		}
	}
	if got, ok := Change(Of(1), 7, Of(2)); ok || got != Of(1) {
		t.Errorf("how 7 changes the mask to %#x", got)
	}
}

// When a handler starts, the stack is aligned as in a called function, and the parts of the signal frame do not
// overlap.
func TestRoom(t *testing.T) {
	for top := uint64(0x10000); top < 0x10040; top++ {
		for _, size := range []uint64{0, 512, 832, 2688} {
			frame, vector := Room(top, size)
			if frame%16 != 8 || vector%64 != 0 || frame+FrameSize > vector || vector+size > top-128 {
				t.Fatalf("below %#x, with %d bytes: frame %#x, vector registers %#x", top, size, frame, vector)
			}
		}
	}
}

// A thread resumes with the registers that its handler has changed, except for those that belong to the kernel.
func TestRegisters(t *testing.T) {
	f := amd64.Frame{
		R15: 1, R14: 2, R13: 3, R12: 4, R11: 5, R10: 6, R9: 7, R8: 8, DI: 9, SI: 10, BP: 11, BX: 12, DX: 13, CX: 14, AX: 15,
		Vector: 14, Code: 2, IP: 16, CS: 8, Flags: 0x202, SP: 17, SS: 16,
	}
	var r Registers
	r.Save(&f)
	got := amd64.Frame{Vector: 14, Code: 2, CS: 8, SS: 16, Flags: 0x202}
	r.Restore(&got)
	if got != f {
		t.Errorf("%+v\nbecame %+v", f, got)
	}
	r.IP, r.CS, r.Flags = 99, 0x33, 0x0001
	r.Restore(&got)
	if got.IP != 99 || got.CS != 8 || got.Flags != 0x203 {
		t.Errorf("after changes: %+v", got)
	}
}
