package kernel

import (
	"sync/atomic"

	"loam/arch/amd64"
	"loam/boot"
)

// The end of the machine after a fault in the kernel, or after a fault in the program for which no signal handler can be
// called. The registers and a stack trace are printed, and the machine ends with statusCrash.

// Fatal is called by the entry code for an exception in the kernel itself. It does not return.
func Fatal(self, frameAddress uintptr) {
	c := cpuAt(self)
	k := c.kernel()
	f, why := frameByAddress(frameAddress), "the kernel failed"
	switch {
	case f.Vector == amd64.VectorPage && f.Code&amd64.FaultPresent == 0 && isStack(amd64.ReadCR2()):
		why = "the kernel's stack is too small for what it does"
	case f.Vector == amd64.VectorNMI:
		why = "the machine wants it to stop (a non-maskable interrupt)"
	case f.Vector == amd64.VectorMachine:
		why = "the hardware has failed (a machine check)"
	}
	k.crash(c, f, why)
}

// crash prints a report and ends the machine. The first CPU to crash reports; other CPUs halt. If the report itself
// crashes, the machine ends at once.
func (k *core) crash(c *cpu, f *amd64.Frame, why string) {
	if !atomic.CompareAndSwapInt32(&k.crashing, 0, c.number+1) {
		if atomic.LoadInt32(&k.crashing) != c.number+1 {
			amd64.Halt()
		}
		k.say("and failed again while it told of that, at ip ")
		k.sayHex(f.IP)
		k.say("\n")
		k.powerOff(statusCrash)
	}
	// A function in the runtime's old calling convention (ABI0) makes its caller reload g from thread-local storage. That
	// would be the program's g, but the crash runs on another stack. FS therefore points to a g that belongs to the kernel.
	k.crashG = entries.CrashG
	amd64.WriteMSR(amd64.MSRFSBase, uint64(addressOf(&k.crashG))+8)
	k.say("\nloam: ")
	k.say(why)
	k.say("\n")
	for _, r := range [...]struct {
		name  string
		value uint64
	}{
		{"vector", f.Vector}, {"code", f.Code}, {"cr2", amd64.ReadCR2()}, {"flags", f.Flags},
		{"ip", f.IP}, {"sp", f.SP}, {"bp", f.BP}, {"r14", f.R14},
		{"ax", f.AX}, {"bx", f.BX}, {"cx", f.CX}, {"dx", f.DX},
		{"si", f.SI}, {"di", f.DI}, {"r8", f.R8}, {"r9", f.R9},
		{"r10", f.R10}, {"r11", f.R11}, {"r12", f.R12}, {"r13", f.R13},
	} {
		k.say(r.name)
		k.say(" ")
		k.sayHex(r.value)
		k.say("\n")
	}
	k.trace(f.IP, f.SP, f.BP)
	k.sayUnserved()
	k.powerOff(statusCrash)
}

// trace prints the chain of callers by following the frame pointers that Go maintains. The innermost function may
// not have pushed its own frame pointer yet.
func (k *core) trace(ip, sp, bp uint64) {
	const most = 32
	for i := range most {
		name, file, line, frameless := symbol(uintptr(ip))
		if name == "" {
			return
		}
		k.say(name)
		k.say(" ")
		k.say(file)
		k.say(":")
		k.sayInt(uint64(line))
		k.say("\n")
		if i == 0 && frameless && k.readable(sp, 8) {
			ip = *word(sp) - 1
			continue
		}
		if bp < boot.Window || bp%8 != 0 || !k.readable(bp, 16) {
			return
		}
		ip, bp = *word(bp + 8)-1, *word(bp)
	}
}

// readable reports whether memory is mapped, so that the kernel can read it without a fault.
func (k *core) readable(addr, size uint64) bool {
	for _, a := range [...]uint64{addr, addr + size - 1} {
		if entry, _ := k.tables.Lookup(a); entry&amd64.PagePresent == 0 {
			return false
		}
	}
	return true
}
