package posix

import (
	"loam/abi/linux"
	"loam/posix/timer"
)

// Calls on timers: see posix/timer.

// TimerFDCreate implements timerfd_create(2). Errors: EINVAL; EPERM for alarm clocks, which wake a
// machine.
func (p *Process) TimerFDCreate(clock, flags int) (int, Errno) {
	if flags&^(linux.O_CLOEXEC|linux.O_NONBLOCK) != 0 {
		return -1, linux.EINVAL
	}
	switch clock {
	case linux.CLOCK_REALTIME, linux.CLOCK_MONOTONIC, linux.CLOCK_BOOTTIME:
	case linux.CLOCK_REALTIME_ALARM, linux.CLOCK_BOOTTIME_ALARM:
		return -1, linux.EPERM
	default:
		return -1, linux.EINVAL
	}
	return p.install(timer.NewFile(clock, p.clock), flags)
}

// TimerFDSet implements timerfd_settime(2). It returns the previous setting. Errors: EBADF, EINVAL.
func (p *Process) TimerFDSet(fd, flags int, s TimerSetting) (TimerSetting, Errno) {
	if flags&^(linux.TFD_TIMER_ABSTIME|linux.TFD_TIMER_CANCEL_ON_SET) != 0 || !timer.Valid(s) {
		return TimerSetting{}, linux.EINVAL
	}
	t, errno := p.timerFD(fd)
	if errno != 0 {
		return TimerSetting{}, errno
	}
	return t.Set(s, flags)
}

// TimerFDGet implements timerfd_gettime(2). Errors: EBADF, EINVAL.
func (p *Process) TimerFDGet(fd int) (TimerSetting, Errno) {
	t, errno := p.timerFD(fd)
	if errno != 0 {
		return TimerSetting{}, errno
	}
	return t.Get(), 0
}

func (p *Process) timerFD(fd int) (*timer.File, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, errno
	}
	t, ok := o.File.(*timer.File)
	if !ok {
		return nil, linux.EINVAL
	}
	return t, 0
}

// Timers returns the timers of the process that send signals.
func (p *Process) Timers() *timer.Set { return &p.timers }

// SetOwner sets the process that owns a child (pidfds name it), and how timers of the child send signals and read clocks of CPU
// time. It is called before the child runs.
func (p *Process) SetOwner(of Watched, s Sender, cpu timer.CPUClock) {
	p.credentials.Process = of
	p.timers.SetOwner(s, cpu)
}
