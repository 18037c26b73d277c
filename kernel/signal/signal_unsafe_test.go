package signal

import (
	"testing"
	"unsafe"
)

// The layout is Linux's: struct rt_sigframe, ucontext and siginfo of x86-64. The offsets were computed by a C compiler.
func TestLayout(t *testing.T) {
	var f Frame
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"size", unsafe.Sizeof(f), FrameSize},
		{"uc", unsafe.Offsetof(f.Context), ContextOffset},
		{"info", unsafe.Offsetof(f.Info), InfoOffset},
		{"sizeof siginfo", unsafe.Sizeof(f.Info), 128},
		{"si_code", unsafe.Offsetof(f.Info.Code), 8},
		{"si_addr", unsafe.Offsetof(f.Info.Value), 16},
		{"uc_stack", unsafe.Offsetof(f.Context.Stack), 16},
		{"uc_mcontext", unsafe.Offsetof(f.Context.Registers), 40},
		{"sizeof mcontext", unsafe.Sizeof(f.Context.Registers), 256},
		{"rip", unsafe.Offsetof(f.Context.Registers.IP), 16 * 8},
		{"cs", unsafe.Offsetof(f.Context.Registers.CS), 18 * 8},
		{"err", unsafe.Offsetof(f.Context.Registers.Code), 19 * 8},
		{"cr2", unsafe.Offsetof(f.Context.Registers.FaultAddress), 22 * 8},
		{"fpstate", unsafe.Offsetof(f.Context.Registers.VectorState), 23 * 8},
		{"uc_sigmask", unsafe.Offsetof(f.Context.Mask), 296},
		{"sigaction", unsafe.Sizeof(Action{}), 32},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
}
