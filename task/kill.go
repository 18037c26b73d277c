package task

import (
	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/family"
	"loam/task/signal"
)

// kill implements kill(2). For several processes, it succeeds if the caller may signal at least one
// of them. Errors: EINVAL, ESRCH, EPERM.
func kill(t *Task, a call.Args) (uint64, linux.Errno) {
	pid, n := family.PID(number(a.A1)), number(a.A2)
	switch {
	case pid == -1<<31: // it has no opposite
		return 0, linux.ESRCH
	case n < 0 || n > int(signal.Last):
		return 0, linux.EINVAL
	}
	i := t.sender(signal.Info{Signal: signal.Number(n), Code: signal.CodeUser})
	s := t.process.system
	t.lockToSend()
	defer t.unlockSent()
	switch {
	case pid > 0:
		return 0, t.killOne(pid, i)
	case pid == -1:
		some := false
		for _, p := range s.processes {
			if p == t.process || p.host != nil {
				continue
			}
			some = true
			t.sendTo(p, i)
		}
		if !some {
			return 0, linux.ESRCH
		}
		return 0, 0
	case pid == 0:
		pid = -t.process.node.Group
	}
	errno := linux.ESRCH
	done := false
	for _, p := range s.group(-pid) {
		errno = t.sendTo(p, i)
		done = done || errno == 0
	}
	if done {
		errno = 0
	}
	return 0, errno
}

// lockToSend takes System.mu for a call that sends signals and then returns to ring 3. An alert of t to itself then only
// records the request: neither a wait nor a run in ring 3 has to be interrupted. A traced thread may wait at the end of the
// call, so it is alerted as usual.
func (t *Task) lockToSend() {
	t.process.system.mu.Lock()
	t.sends = !t.alerted.Hooked()
}

// unlockSent ends lockToSend.
func (t *Task) unlockSent() {
	t.sends = false
	t.process.system.mu.Unlock()
}

// killOne sends a signal to one process. The caller holds System.mu. Errors: ESRCH, EPERM.
func (t *Task) killOne(pid family.PID, i signal.Info) linux.Errno {
	s := t.process.system
	if p := s.processes[pid]; p != nil {
		return t.sendTo(p, i)
	}
	if of := s.tasks[pid]; of != nil { // the ID of a thread stands for the process of the thread
		return t.sendTo(of.process, i)
	}
	switch {
	case s.tree.Find(pid) == nil:
		return linux.ESRCH
	case pid == s.root.PID && !t.creds().Has(linux.CAP_KILL) && t.creds().UID != 0:
		return linux.EPERM
	}
	return 0 // pid is a zombie, or process 1, which ignores signals
}

// sendTo sends a signal to a process, or only checks the permission for signal 0. The caller holds System.mu. Errors: EPERM, EAGAIN.
func (t *Task) sendTo(p *Process, i signal.Info) linux.Errno {
	if !t.maySignal(p, int(i.Signal)) {
		return linux.EPERM
	}
	if i.Signal > 0 {
		return p.send(nil, i)
	}
	return 0
}
