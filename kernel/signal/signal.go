// Package signal is what Linux keeps of signals, as far as the Go runtime looks:
// numbers, sets, what is to be done for each, and the frame that a handler finds
// on its stack (frame.go). See signal(7), sigaction(2).
//
// Nothing here allocates, and nothing locks: the owner does.
package signal

// Number is that of a signal, 1 to Max.
type Number int32

// Numbers that the kernel itself has to do with: signal(7), x86.
const (
	Illegal   Number = 4
	Trap      Number = 5
	Bus       Number = 7
	FloatTrap Number = 8
	Kill      Number = 9
	Segment   Number = 11
	Child     Number = 17
	Continue  Number = 18
	Stop      Number = 19
	StopTTY   Number = 20
	ReadTTY   Number = 21
	WriteTTY  Number = 22
	Urgent    Number = 23
	Profile   Number = 27
	Window    Number = 28
	System    Number = 31

	Max Number = 64
)

// Set is a set of signals: bit n-1 stands for signal n, as in sigset_t.
type Set uint64

// Of is the set of one signal.
func Of(n Number) Set { return 1 << (n - 1) }

// Valid reports whether there is such a signal.
func (n Number) Valid() bool { return n >= 1 && n <= Max }

// First is the signal of a set that is told first: one that a fault of the
// thread's own has caused comes before the others, as on Linux.
func (s Set) First() Number {
	const faults = 1<<(Illegal-1) | 1<<(Trap-1) | 1<<(Bus-1) | 1<<(FloatTrap-1) | 1<<(Segment-1)
	if f := s & faults; f != 0 {
		s = f
	}
	for n := Number(1); n <= Max; n++ {
		if s&Of(n) != 0 {
			return n
		}
	}
	return 0
}

// What Action.Handler may be beside an address.
const (
	Default = 0
	Ignore  = 1
)

// Flags of an action: sigaction(2).
const (
	FlagOnStack  = 0x0800_0000
	FlagNoDefer  = 0x4000_0000
	FlagOneShot  = 0x8000_0000
	FlagRestorer = 0x0400_0000
)

// Action is struct sigaction as the system call has it.
type Action struct {
	Handler  uint64
	Flags    uint64
	Restorer uint64 // where the handler returns to
	Mask     Set    // held back while the handler runs
}

// Effect is what a signal does.
type Effect int

// Effects.
const (
	None   Effect = iota
	Handle        // call the handler
	End           // end the program
)

// Effect is what signal n does when the action is a.
func (a *Action) Effect(n Number) Effect {
	switch a.Handler {
	case Default:
		switch n {
		case Child, Continue, Urgent, Window, Stop, StopTTY, ReadTTY, WriteTTY:
			return None // nobody is there who could let a stopped program go on
		}
		return End
	case Ignore:
		return None
	}
	return Handle
}

// Blocked is what a thread holds back while the handler of n runs, if it holds
// back mask before.
func (a *Action) Blocked(n Number, mask Set) Set {
	mask |= a.Mask
	if a.Flags&FlagNoDefer == 0 {
		mask |= Of(n)
	}
	return mask &^ unstoppable
}

// unstoppable are those that cannot be held back.
const unstoppable = Set(1<<(Kill-1) | 1<<(Stop-1))

// How a mask changes: rt_sigprocmask(2).
const (
	Block   = 0
	Unblock = 1
	SetMask = 2
)

// Change is mask after a change; false if there is no such change.
func Change(mask Set, how int, set Set) (Set, bool) {
	switch how {
	case Block:
		mask |= set
	case Unblock:
		mask &^= set
	case SetMask:
		mask = set
	default:
		return mask, false
	}
	return mask &^ unstoppable, true
}
