// Package signal keeps the signals of processes: what is pending, blocked, ignored or handled,
// and what happens when one is delivered (signal(7), sigaction(2); POSIX.1-2017, 2.4).
//
// It is a pure state machine: it does not wait, and takes no lock. A Process holds the dispositions and the
// signals sent to the process as a whole; a Thread holds its mask and the signals sent to it alone. The
// caller owns both and serialises calls for one process; it wakes, stops, continues and ends threads as
// results say.
// Only the goroutine of a thread changes its mask, and it needs no lock to do so: Send makes a
// signal pending before it looks for a thread that does not block the signal, and the thread
// changes its mask before it looks at the pending signals (Deliverable).
//
// # Life of a signal
//
//	Send ─▶ discarded        ignored and not blocked, or a standard signal that is pending already
//	     ─▶ pending ─ Next ─▶ handler | terminate | stop | continue | nothing
//	               ─ Take ─▶ sigtimedwait, signalfd
//
// A standard signal (1 to 31) is pending once; real-time signals (32 to 64) queue in order. If several are
// pending, a thread first gets the signals that its own instructions have caused, then the others by their
// numbers; signals sent to the thread come before signals sent to the process.
package signal

import (
	"math/bits"
	"sync/atomic"
)

// Number is the number of a signal, from 1 to Last.
type Number uint8

// Signals with rules of their own. Values are those of Linux on x86-64.
const (
	Quit          Number = 3
	Illegal       Number = 4
	Trap          Number = 5
	Abort         Number = 6
	Bus           Number = 7
	FloatingPoint Number = 8
	Kill          Number = 9
	Segmentation  Number = 11
	StackFault    Number = 16
	Child         Number = 17
	Continue      Number = 18
	Stop          Number = 19
	TerminalStop  Number = 20
	TerminalIn    Number = 21
	TerminalOut   Number = 22
	Urgent        Number = 23
	CPULimit      Number = 24
	FileLimit     Number = 25
	Window        Number = 28
	System        Number = 31
	firstRealTime Number = 32
	Last          Number = 64
)

// Set is a set of signals: bit n-1 is signal n, as in sigset_t.
type Set uint64

// SetOf returns a set of the signals given.
func SetOf(all ...Number) (s Set) {
	for _, n := range all {
		s |= 1 << (n - 1)
	}
	return s
}

// Has reports whether the set contains a signal.
func (s Set) Has(n Number) bool { return s>>(n-1)&1 != 0 }

// sharedSet is a Set that any goroutine may read while its owner changes it.
type sharedSet struct{ bits atomic.Uint64 }

func (s *sharedSet) load() Set   { return Set(s.bits.Load()) }
func (s *sharedSet) store(v Set) { s.bits.Store(uint64(v)) }

// first returns the signal of a set that is delivered first. The set is not empty.
func (s Set) first() Number {
	if fault := s & synchronous; fault != 0 {
		s = fault
	}
	return Number(bits.TrailingZeros64(uint64(s)) + 1)
}

var (
	synchronous = SetOf(Segmentation, Bus, Illegal, Trap, FloatingPoint, System)
	// Synchronous are the signals that an instruction of the thread itself causes.
	Synchronous = synchronous

	stops       = SetOf(Stop, TerminalStop, TerminalIn, TerminalOut)
	unblockable = SetOf(Kill, Stop)
	cores       = SetOf(Quit, Illegal, Trap, Abort, FloatingPoint, Segmentation, Bus, System, CPULimit, FileLimit)
	harmless    = SetOf(Continue, Child, Window, Urgent)
)

// Effect is the effect of a signal on a process.
type Effect uint8

// Values of Effect.
const (
	None      Effect = iota // no signal is to be delivered, or it is ignored
	Handle                  // the handler is called
	Terminate               // the signal ends the process
	Core                    // the signal ends the process with a core dump
	Suspend                 // the process stops; in an orphaned group, only SIGSTOP stops it, which the caller checks
)

// defaultEffect returns the effect of a signal without a handler. SIGCONT has none here, because it continues the process
// when it is sent, not when it is delivered.
func defaultEffect(n Number) Effect {
	switch s := SetOf(n); {
	case s&stops != 0:
		return Suspend
	case s&harmless != 0:
		return None
	case s&cores != 0:
		return Core
	}
	return Terminate
}

// Info holds the fields of siginfo_t. The fields after Code depend on Code.
type Info struct {
	Signal Number
	Code   int32
	Errno  int32
	PID    int32
	UID    uint32
	Status int32  // for SIGCHLD: the exit status or signal
	User   uint64 // for SIGCHLD: CPU times of the child in ticks
	System uint64
	Value  uint64 // for sigqueue and timers: the value; for SIGSYS: the number of the call, and the architecture << 32
	Addr   uint64 // for faults: the address; for SIGSYS: the address of the call
}

// Values of Info.Code that this package distinguishes (siginfo(7)).
const (
	CodeUser   = 0    // SI_USER: sent by kill(2)
	CodeKernel = 0x80 // SI_KERNEL: sent by the kernel
	CodeQueue  = -1   // SI_QUEUE: sent by sigqueue(3)
	CodeThread = -6   // SI_TKILL: sent by tgkill(2)
)

// Flags of an Action, SA_*.
const (
	NoChildStop  = 1
	NoChildWait  = 2
	SigInfo      = 4
	OnStack      = 0x08000000
	Restart      = 0x10000000
	NoDefer      = 0x40000000
	ResetHandler = 0x80000000
)

// Special values of a handler.
const (
	Default = 0
	Ignore  = 1
)

// Action is the disposition of a signal, as the kernel's struct sigaction.
type Action struct {
	Handler, Restorer uint64
	Flags             uint32
	Mask              Set
}
