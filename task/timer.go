package task

import (
	"loam/abi/linux"
	"loam/task/family"
	"loam/task/signal"
)

// codeTimer is the signal.Info.Code of a timer of timer_create(2) (SI_TIMER).
const codeTimer = -2

// sendTimer is the posix.Sender of a process: it sends the signals of its timers.
func (p *Process) sendTimer(thread int32, n int) linux.Errno {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	var to *Task
	if thread != 0 {
		if to = p.system.tasks[family.PID(thread)]; to == nil || to.process != p {
			return linux.ESRCH
		}
	}
	if n != 0 {
		p.send(to, signal.Info{Signal: signal.Number(n), Code: codeTimer})
	}
	return 0
}

// ring sends SIGALRM because the alarm has expired.
func (p *Process) ring() {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	p.send(nil, signal.Info{Signal: linux.SIGALRM, Code: signal.CodeKernel})
}
