package timer

import "loam/abi/linux"

// Parts of the ID of a clock of CPU time that contains the number of a process or a thread: the complement of the number, and
// three bits for the kind of clock (clock_getcpuclockid(3), pthread_getcpuclockid(3)).
const (
	clockNumber    = 3 // number of bits below the complement
	clockOfThread  = 1 << 2
	clockKinds     = 3
	clockScheduled = 2 // the largest kind
)

// ParseClock returns which process or thread the clock of CPU time with an ID belongs to. Number 0 is the caller. ok is false if the
// ID is not one of a clock of CPU time.
func ParseClock(id int) (number int, thread, ok bool) {
	switch {
	case id == linux.CLOCK_PROCESS_CPUTIME_ID:
		return 0, false, true
	case id == linux.CLOCK_THREAD_CPUTIME_ID:
		return 0, true, true
	case id >= 0 || id&clockKinds > clockScheduled:
		return 0, false, false
	}
	return ^(id >> clockNumber), id&clockOfThread != 0, true
}

// ThreadClock returns the ID of the clock of a thread.
func ThreadClock(thread int) int { return ^thread<<clockNumber | clockOfThread | clockScheduled }
