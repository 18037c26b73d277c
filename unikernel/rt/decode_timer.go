package rt

import (
	"syscall"
	"time"
	"unsafe"

	"loam/posix"
)

//go:noinline
func sysTimerfdCreate(clock, flags int) (uintptr, uintptr) {
	return result(process.TimerFDCreate(clock, flags))
}

//go:noinline
func sysTimerfdSettime(fd, flags int, setting, old unsafe.Pointer) (uintptr, uintptr) {
	if setting == nil {
		return fail(syscall.EFAULT)
	}
	before, errno := process.TimerFDSet(fd, flags, *(*posix.TimerSetting)(setting))
	if errno == 0 && old != nil {
		*(*posix.TimerSetting)(old) = before
	}
	return fail(errno)
}

//go:noinline
func sysTimerfdGettime(fd int, setting unsafe.Pointer) (uintptr, uintptr) {
	s, errno := process.TimerFDGet(fd)
	switch {
	case errno != 0:
		return fail(errno)
	case setting == nil:
		return fail(syscall.EFAULT)
	}
	*(*posix.TimerSetting)(setting) = s
	return fail(0)
}

// sysClockAdjtime is adjtimex too, of clock 0.
//
//go:noinline
func sysClockAdjtime(clock int, p unsafe.Pointer) (uintptr, uintptr) {
	if p == nil {
		return fail(syscall.EFAULT)
	}
	t := *(*syscall.Timex)(p)
	state, errno := process.ClockAdjtime(clock, &t)
	if errno == 0 {
		*(*syscall.Timex)(p) = t
	}
	return result(state, errno)
}

// readClock reads a clock that there is.
func readClock(id int) time.Duration {
	var t syscall.Timespec
	hostCall(syscall.SYS_CLOCK_GETTIME, uintptr(id), uintptr(unsafe.Pointer(&t)), 0, 0, 0, 0)
	return time.Duration(t.Nano())
}
