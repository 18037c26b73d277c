package task

import (
	"math"

	"loam/abi/linux"
	"loam/posix"
	"loam/posix/timer"
	"loam/task/family"
	"loam/task/signal"
)

// sendTimer is the posix.Sender of a process: it sends the signals of its timers.
func (p *Process) sendTimer(e posix.Expiry) (merged bool, errno linux.Errno) {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	var to *Task
	if e.Thread != 0 {
		if to = p.system.tasks[family.PID(e.Thread)]; to == nil || to.process != p {
			return false, linux.ESRCH
		}
	}
	if e.Signal == 0 {
		return false, 0
	}
	if e.Timer == timer.Interval {
		p.send(to, signal.Info{Signal: signal.Number(e.Signal), Code: signal.CodeKernel})
		return false, 0
	}
	i := signal.TimerInfo(signal.Number(e.Signal), e.Timer, e.Value, uint32(min(e.Overrun, math.MaxInt32)))
	if p.signals != nil {
		pending := p.signals.Overrun
		if to != nil {
			pending = to.signals.Overrun
		}
		if pending(i) {
			return true, 0
		}
	}
	p.send(to, i)
	return false, 0
}

// ring sends SIGALRM because the alarm has expired.
func (p *Process) ring() {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	p.send(nil, signal.Info{Signal: linux.SIGALRM, Code: signal.CodeKernel})
}
