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
	f, why := frameByAddress(frameAddress), "the kernel failed"
	switch {
	case f.Vector == amd64.VectorPage && f.Code&amd64.FaultPresent == 0 && isStack(amd64.ReadCR2()):
		why = "the kernel's stack is too small for what it does"
	case f.Vector == amd64.VectorNMI:
		why = "the machine wants it to stop (a non-maskable interrupt)"
	case f.Vector == amd64.VectorMachine:
		why = "the hardware has failed (a machine check)"
	}
	crash(cpuAt(self), f, why)
}

// crashG is the word below the FS base during a crash, from which Go code loads g.
var crashG uintptr

// crashing is the number of the CPU that reports a crash, plus one; 0: none. Atomic.
var crashing int32

// crash prints a report and ends the machine. The first CPU to crash reports; other CPUs halt. If the report itself
// crashes, the machine ends at once.
func crash(c *cpu, f *amd64.Frame, why string) {
	if !atomic.CompareAndSwapInt32(&crashing, 0, c.number+1) {
		if atomic.LoadInt32(&crashing) != c.number+1 {
			amd64.Halt()
		}
		say("and failed again while it told of that, at ip ")
		sayHex(f.IP)
		say("\n")
		powerOff(statusCrash)
	}
	// A function in the runtime's old calling convention (ABI0) makes its caller reload g from thread-local storage. That
	// would be the program's g, but the crash runs on another stack. FS therefore points to a g that belongs to the kernel.
	crashG = entries.CrashG
	amd64.WriteMSR(amd64.MSRFSBase, uint64(addressOf(&crashG))+8)
	say("\nloam: ")
	say(why)
	say("\n")
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
		say(r.name)
		say(" ")
		sayHex(r.value)
		say("\n")
	}
	trace(f.IP, f.SP, f.BP)
	sayUnserved()
	powerOff(statusCrash)
}

// trace prints the chain of callers by following the frame pointers that Go maintains. The innermost function may
// not have pushed its own frame pointer yet.
func trace(ip, sp, bp uint64) {
	const most = 32
	for i := range most {
		name, file, line, frameless := symbol(uintptr(ip))
		if name == "" {
			return
		}
		say(name)
		say(" ")
		say(file)
		say(":")
		sayInt(uint64(line))
		say("\n")
		if i == 0 && frameless && readable(sp, 8) {
			ip = *word(sp) - 1
			continue
		}
		if bp < boot.Window || bp%8 != 0 || !readable(bp, 16) {
			return
		}
		ip, bp = *word(bp + 8)-1, *word(bp)
	}
}

// readable reports whether memory is mapped, so that the kernel can read it without a fault.
func readable(addr, size uint64) bool {
	for _, a := range [...]uint64{addr, addr + size - 1} {
		if entry, _ := tables.Lookup(a); entry&amd64.PagePresent == 0 {
			return false
		}
	}
	return true
}
