package trace

import (
	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/signal"
)

// RestartOf returns whether, and in which cases, a call is made again after a signal has interrupted it.
// row is its row in the table of calls, or nil; second is its second argument.
func RestartOf(number, second uint64, row *call.Row) signal.Interrupted {
	switch number &= 1<<32 - 1; number {
	case linux.SYS_WAIT4, linux.SYS_WAITID, linux.SYS_FUTEX_WAITV:
		return signal.Restartable
	case linux.SYS_FUTEX:
		switch uint32(second) &^ (linux.FUTEX_PRIVATE_FLAG | linux.FUTEX_CLOCK_REALTIME) {
		case linux.FUTEX_LOCK_PI, linux.FUTEX_LOCK_PI2, linux.FUTEX_WAIT_REQUEUE_PI:
			return signal.Always
		}
		return signal.Restartable
	case linux.SYS_NANOSLEEP, linux.SYS_CLOCK_NANOSLEEP:
		return signal.Rest
	}
	if row != nil && row.Signal == call.Restarts {
		return signal.Restartable
	}
	return signal.NoHandler
}
