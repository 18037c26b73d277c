// Package signal defines the signals of Linux as far as the Go runtime uses them: numbers, sets, actions, and the
// frame on a handler's stack (frame.go). See signal(7), sigaction(2).
//
// Nothing here allocates or locks: the caller provides the locking.
package signal

// Number is the number of a signal, 1 to Max.
type Number int32

// Signals that the kernel treats specially, with the numbers of x86: signal(7).
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

// Of returns the set that contains only n.
func Of(n Number) Set { return 1 << (n - 1) }

// Valid reports whether n is a signal number.
func (n Number) Valid() bool { return n >= 1 && n <= Max }

// First returns the signal of a set to deliver first, or 0 if the set is empty. Signals of faults come before all
// others, as on Linux; otherwise lower numbers come first.
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

// Special values of Action.Handler, which are not addresses.
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

// Action is struct sigaction in the layout of rt_sigaction(2).
type Action struct {
	Handler  uint64
	Flags    uint64
	Restorer uint64 // return address of the handler
	Mask     Set    // signals that are blocked while the handler runs
}

// Effect says what the delivery of a signal does.
type Effect int

// Values of Effect.
const (
	None   Effect = iota
	Handle        // call the handler of the signal
	End           // end the program
)

// Effect returns the effect of signal n under action a.
func (a *Action) Effect(n Number) Effect {
	switch a.Handler {
	case Default:
		switch n {
		case Child, Continue, Urgent, Window, Stop, StopTTY, ReadTTY, WriteTTY:
			return None // a stopped program could not be continued by anything
		}
		return End
	case Ignore:
		return None
	}
	return Handle
}

// Blocked returns the mask of a thread while its handler for signal n runs. mask is the mask before the call of the handler.
func (a *Action) Blocked(n Number, mask Set) Set {
	mask |= a.Mask
	if a.Flags&FlagNoDefer == 0 {
		mask |= Of(n)
	}
	return mask &^ unstoppable
}

// unstoppable is the set of signals that cannot be blocked.
const unstoppable = Set(1<<(Kill-1) | 1<<(Stop-1))

// Operations of rt_sigprocmask(2): values of how.
const (
	Block   = 0
	Unblock = 1
	SetMask = 2
)

// Change returns the mask after an operation; false if how is not an operation. The result never blocks SIGKILL and
// SIGSTOP.
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
