// Package trap decides which signals the exceptions and page faults of a thread cause, and finds calls through the vsyscall page.
package trap

import (
	"loam/arch/amd64"
	"loam/mem"
	"loam/task/signal"
)

// Bits of the error code of a page fault: SDM volume 3, 4.7.
const (
	present = 1 << 0 // the page is present, but does not permit the access
	write   = 1 << 1
	user    = 1 << 2 // the access has the privileges of ring 3
	fetch   = 1 << 4
)

// Values of si_code (sigaction(2)).
const (
	segvMap, segvAccess = 1, 2
	busAddress          = 2
	illOperand          = 2
	fpeDivide           = 1
	trapBreak           = 128 // SI_KERNEL: the instruction INT3 was executed
)

// Access returns the kind of access that caused the page fault in f.
func Access(f *amd64.Frame) mem.Access {
	switch {
	case f.Code&fetch != 0:
		return mem.Fetch
	case f.Code&write != 0:
		return mem.Store
	}
	return mem.Load
}

// Memory is the memory of a process. Its methods return false if the page tables do not permit ring 3 the access.
type Memory interface {
	Load(addr uint64) (value uint32, ok bool)
	CompareAndSwap(addr uint64, old, value uint32) (found uint32, ok bool)
}

// Hopeless reports whether the access that caused the page fault in f fails again if it is repeated: a present page did not permit
// it, although the processor made it with the privileges of ring 0, and the page tables permit ring 3 the access. Ring 3 causes such
// accesses by instructions that use descriptor tables. QEMU 7.2 also executes LRET, IRET and far CALL of ring 3 with the privileges
// of ring 0. With SMAP they fail on each page of the program. On pages of the kernel they succeed.
func Hopeless(f *amd64.Frame, addr uint64, m Memory) (hopeless bool) {
	if f.Code&(present|user) != present {
		return false
	}
	if word := addr &^ 3; Access(f) == mem.Store {
		_, hopeless = m.CompareAndSwap(word, 0, 0)
	} else {
		_, hopeless = m.Load(word)
	}
	return hopeless
}

// Page returns the signal for the result of a page fault. ok is false if the result causes no signal.
func Page(r mem.Result, addr uint64) (i signal.Info, ok bool) {
	switch r {
	case mem.MapError:
		return signal.Info{Signal: signal.Segmentation, Code: segvMap, Addr: addr}, true
	case mem.AccessError:
		return signal.Info{Signal: signal.Segmentation, Code: segvAccess, Addr: addr}, true
	case mem.BusError:
		return signal.Info{Signal: signal.Bus, Code: busAddress, Addr: addr}, true
	}
	return i, false
}

// Exception returns the signal for another exception than a page fault and a debug exception.
func Exception(f *amd64.Frame) signal.Info {
	switch f.Vector {
	case amd64.VectorDivide:
		return signal.Info{Signal: signal.FloatingPoint, Code: fpeDivide, Addr: f.IP}
	case amd64.VectorX87, amd64.VectorSIMD:
		return signal.Info{Signal: signal.FloatingPoint, Addr: f.IP}
	case amd64.VectorInvalid:
		return signal.Info{Signal: signal.Illegal, Code: illOperand, Addr: f.IP}
	case amd64.VectorBreakpoint:
		return signal.Info{Signal: signal.Trap, Code: trapBreak}
	case amd64.VectorStack, amd64.VectorAlign:
		return signal.Info{Signal: signal.Bus, Code: signal.CodeKernel}
	}
	return signal.Info{Signal: signal.Segmentation, Code: signal.CodeKernel}
}
