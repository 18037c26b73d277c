package trace

import (
	"loam/abi/linux"
	"loam/mem"
)

// FlagResume is RF of RFLAGS: a breakpoint for the next instruction is ignored.
const FlagResume = 1 << 16

// DebugRegisters holds the registers DR0 to DR7 of a thread. DR6 has the value that Linux shows to debuggers.
type DebugRegisters [8]uint64

// Bits of DR7 (SDM volume 3, 17.2.4).
const (
	debugEnables  = 0xff
	debugAllowed  = 0xffff0000 | debugEnables
	debugStatus   = 6
	debugControl  = 7
	DebugCount    = 4
	debugHit      = 1<<DebugCount - 1 // bits of DR6 for hits of DR0 to DR3
	debugReserved = 0xffff0ff0        // bits of DR6 that always read as 1
)

// Active reports whether a breakpoint is enabled.
func (d *DebugRegisters) Active() bool { return d[debugControl]&debugEnables != 0 }

// set changes a register. Errors: EIO for DR4 and DR5; EINVAL for an address outside the process, or a breakpoint that the
// processor does not have.
func (d *DebugRegisters) set(i int, v uint64) linux.Errno {
	next := *d
	switch i {
	case 4, 5:
		return linux.EIO
	case debugControl:
		v &= debugAllowed
	}
	next[i] = v
	for n := range DebugCount {
		kind, length := next[debugControl]>>(16+4*n)&3, next[debugControl]>>(18+4*n)&3
		const execute, inOut, eight = 0, 2, 2
		size := [...]uint64{1, 2, 8, 4}[length]
		switch {
		case next[n] >= mem.End && i == n:
			return linux.EINVAL
		case next[debugControl]>>(2*n)&3 == 0:
		case kind == inOut, kind == execute && length != 0, next[n]%size != 0, next[n] >= mem.End:
			return linux.EINVAL
		}
	}
	*d = next
	return 0
}

// Addresses returns the registers DR0 to DR3, and Control returns DR7.
func (d *DebugRegisters) Addresses() [DebugCount]uint64 { return [DebugCount]uint64(d[:DebugCount]) }

func (d *DebugRegisters) Control() uint64 { return d[debugControl] }

// Single reports whether a single step caused a debug exception, and Hit whether a breakpoint did. status is the value of
// DR6.
func Single(status uint64) bool { return status&step != 0 }

func Hit(status uint64) bool { return status&debugHit != 0 }

// step is the bit BS of DR6.
const step = 1 << 14

// Trapped records a debug exception; status is the value of DR6. Trapped reports whether an instruction breakpoint
// was hit: the thread must then execute the instruction with FlagResume.
func (d *DebugRegisters) Trapped(status uint64) (instruction bool) {
	for n := range DebugCount {
		if status>>n&1 != 0 && d[debugControl]>>(16+4*n)&3 == 0 {
			instruction = true
		}
	}
	d[debugStatus] = debugReserved | status&(debugHit|step)
	return instruction
}
