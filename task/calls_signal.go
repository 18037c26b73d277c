package task

import (
	"encoding/binary"
	"time"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/family"
	"loam/task/signal"
	"loam/task/trace"
)

// signalCalls are the calls that send signals, wait for them, and set their actions and masks.
var signalCalls = map[int]serveFunc{
	linux.SYS_RT_SIGACTION:   sigaction,
	linux.SYS_RT_SIGPROCMASK: sigprocmask,
	linux.SYS_RT_SIGRETURN:   func(t *Task, _ call.Args) (uint64, linux.Errno) { t.sigreturn(); return 0, noResult },
	linux.SYS_SIGALTSTACK:    sigaltstack,
	linux.SYS_RT_SIGPENDING: func(t *Task, a call.Args) (uint64, linux.Errno) {
		set := t.signals.Pending() & t.signals.Mask()
		return 0, t.putSet(a.A1, set)
	},
	linux.SYS_RT_SIGSUSPEND: func(t *Task, a call.Args) (uint64, linux.Errno) {
		set, errno := t.set(a.A1, a.A2)
		if errno != 0 {
			return 0, errno
		}
		t.suspend(set)
		return 0, t.await(nil, forever)
	},
	linux.SYS_PAUSE:           func(t *Task, _ call.Args) (uint64, linux.Errno) { return 0, t.await(nil, forever) },
	linux.SYS_RT_SIGTIMEDWAIT: sigtimedwait,
	linux.SYS_KILL:            kill,
	linux.SYS_SIGNALFD:        func(t *Task, a call.Args) (uint64, linux.Errno) { return signalfd(t, a, 0) },
	linux.SYS_SIGNALFD4:       func(t *Task, a call.Args) (uint64, linux.Errno) { return signalfd(t, a, number(a.A4)) },
	linux.SYS_TKILL: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.signalThread(0, number(a.A1), number(a.A2), signal.Info{Code: signal.CodeThread})
	},
	linux.SYS_TGKILL: func(t *Task, a call.Args) (uint64, linux.Errno) {
		if number(a.A1) <= 0 {
			return 0, linux.EINVAL
		}
		return t.signalThread(number(a.A1), number(a.A2), number(a.A3), signal.Info{Code: signal.CodeThread})
	},
}

// setSize is the size of a set of signals in bytes.
const setSize = 8

// set reads a set of signals. Errors: EINVAL for another size, EFAULT.
func (t *Task) set(addr, size uint64) (signal.Set, linux.Errno) {
	if size != setSize {
		return 0, linux.EINVAL
	}
	v, errno := t.caller.Memory.Pointer(addr)
	return signal.Set(v), errno
}

func (t *Task) putSet(addr uint64, s signal.Set) linux.Errno {
	return t.put(addr, setSize, func(b []byte) { binary.LittleEndian.PutUint64(b, uint64(s)) })
}

// suspend replaces the signal mask of the task for the time of a wait.
func (t *Task) suspend(s signal.Set) {
	t.signals.Suspend(s)
	t.suspended = true
	if t.signals.Deliverable() {
		t.process.system.mu.Lock()
		defer t.process.system.mu.Unlock()
		t.alert()
	}
}

// sigaction implements rt_sigaction(2).
func sigaction(t *Task, a call.Args) (uint64, linux.Errno) {
	if a.A4 != setSize {
		return 0, linux.EINVAL
	}
	n := signal.Number(a.A1)
	if a.A1 < 1 || a.A1 > uint64(signal.Last) || a.A2 != 0 && (n == signal.Kill || n == signal.Stop) {
		return 0, linux.EINVAL
	}
	var to linux.KernelSigaction
	if a.A2 != 0 {
		var errno linux.Errno
		if to, errno = read(t, a.A2, linux.SizeofKernelSigaction, linux.ParseKernelSigaction); errno != 0 {
			return 0, errno
		}
	}
	s := t.process.system
	s.mu.Lock()
	old := t.process.signals.Action(n)
	if a.A2 != 0 {
		t.process.signals.SetAction(n, signal.Action{
			Handler: to.Handler, Restorer: to.Restorer, Flags: uint32(to.Flags), Mask: signal.Set(to.Mask),
		})
		if n == signal.Child {
			t.process.node.NoZombies = to.Handler == signal.Ignore || to.Flags&signal.NoChildWait != 0
		}
	}
	s.mu.Unlock()
	was := linux.KernelSigaction{Handler: old.Handler, Flags: uint64(old.Flags), Restorer: old.Restorer, Mask: uint64(old.Mask)}
	return 0, t.put(a.A3, linux.SizeofKernelSigaction, was.Put)
}

// sigprocmask implements rt_sigprocmask(2).
func sigprocmask(t *Task, a call.Args) (uint64, linux.Errno) {
	if a.A4 != setSize {
		return 0, linux.EINVAL
	}
	old := t.signals.Mask()
	if a.A2 != 0 {
		to, errno := t.set(a.A2, setSize)
		if errno != 0 {
			return 0, errno
		}
		switch number(a.A1) {
		case linux.SIG_BLOCK:
			t.signals.SetMask(old | to)
		case linux.SIG_UNBLOCK:
			t.signals.SetMask(old &^ to)
		case linux.SIG_SETMASK:
			t.signals.SetMask(to)
		default:
			return 0, linux.EINVAL
		}
		if t.signals.Deliverable() {
			t.alerted.Store(true)
		}
	}
	return 0, t.putSet(a.A3, old)
}

// sigaltstack implements sigaltstack(2).
func sigaltstack(t *Task, a call.Args) (uint64, linux.Errno) {
	old := t.altStack
	on := t.onAltStack(t.registers.SP)
	if on {
		old.Flags |= linux.SS_ONSTACK
	}
	if a.A1 != 0 {
		to, errno := read(t, a.A1, linux.SizeofSigStack, linux.ParseSigStack)
		switch {
		case errno != 0:
			return 0, errno
		case on:
			return 0, linux.EPERM
		case to.Flags&^(linux.SS_DISABLE|linux.SS_ONSTACK|linux.SS_AUTODISARM) != 0, to.Flags&(linux.SS_DISABLE|linux.SS_ONSTACK) == linux.SS_DISABLE|linux.SS_ONSTACK:
			return 0, linux.EINVAL
		case to.Flags&linux.SS_DISABLE != 0:
			to = noAltStack
		case to.Size < linux.MINSIGSTKSZ:
			return 0, linux.ENOMEM
		}
		to.Flags &^= linux.SS_ONSTACK
		t.altStack = to
	}
	return 0, t.put(a.A2, linux.SizeofSigStack, old.Put)
}

// onAltStack reports whether a stack pointer is in the alternate stack. With SS_AUTODISARM a thread is never on it.
func (t *Task) onAltStack(sp uint64) bool {
	return t.altStack.Flags&(linux.SS_DISABLE|linux.SS_AUTODISARM) == 0 && sp-t.altStack.Addr-1 < t.altStack.Size
}

// sigtimedwait implements rt_sigtimedwait(2).
func sigtimedwait(t *Task, a call.Args) (uint64, linux.Errno) {
	set, errno := t.set(a.A1, a.A4)
	if errno != 0 {
		return 0, errno
	}
	most := forever
	if a.A3 != 0 {
		if most, errno = t.duration(a.A3); errno != 0 {
			return 0, errno
		}
	}
	i, errno := t.takeSignal(set, most)
	if errno != 0 {
		return 0, errno
	}
	return uint64(i.Signal), t.put(a.A2, signal.InfoSize, func(b []byte) { i.Put(b) })
}

// takeSignal takes a pending signal of a set, or waits for one. Errors: EAGAIN when the time is up, EINTR.
func (t *Task) takeSignal(set signal.Set, most time.Duration) (signal.Info, linux.Errno) {
	s := t.process.system
	deadline := time.Now().Add(most)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.signals.Seek(set) // from now on, these signals wake this task
	defer t.signals.Sought()
	for late := false; ; {
		i, ok := t.signals.Take(set)
		switch {
		case ok:
			return i, 0
		case t.signals.Deliverable() || t.process.ending || t.process.stopped || t.dismissed.Load():
			return i, linux.EINTR
		case late:
			return i, linux.EAGAIN
		}
		left := most
		if most >= 0 {
			left = max(time.Until(deadline), 0)
		}
		s.mu.Unlock()
		late = t.await(nil, left) == linux.ETIMEDOUT
		s.mu.Lock()
	}
}

// sender fills in the fields of the siginfo that identify the task as the sender.
func (t *Task) sender(i signal.Info) signal.Info {
	i.PID, i.UID = int32(t.process.node.PID), t.creds().UID
	return i
}

// signalThread sends signal n to the thread with an ID. If pid is not 0, the thread must belong to that process. Errors: EINVAL,
// ESRCH, EPERM, EAGAIN.
func (t *Task) signalThread(pid, id, n int, i signal.Info) (uint64, linux.Errno) {
	if id <= 0 || n < 0 || n > int(signal.Last) {
		return 0, linux.EINVAL
	}
	s := t.process.system
	t.lockToSend()
	defer t.unlockSent()
	to := s.tasks[family.PID(id)]
	if to == nil || pid != 0 && to.process.node.PID != family.PID(pid) {
		return 0, linux.ESRCH
	}
	if !t.maySignal(to.process, n) {
		return 0, linux.EPERM
	}
	if n > 0 {
		i.Signal = signal.Number(n)
		return 0, to.process.send(to, t.sender(i))
	}
	return 0, 0
}

// group returns the running processes of a process group. The caller holds System.mu.
func (s *System) group(id family.PID) (all []*Process) {
	for _, m := range s.tree.Members(id) {
		if p := s.processes[m.PID]; p != nil {
			all = append(all, p)
		}
	}
	return all
}

// sendGroup sends a signal to a process group. The caller holds System.mu.
func (s *System) sendGroup(id family.PID, i signal.Info) {
	for _, p := range s.group(id) {
		p.send(nil, i)
	}
}

// send sends a signal to the process, or to one of its threads. The caller holds System.mu. Errors: EAGAIN if there is no
// room for a queued signal (RLIMIT_SIGPENDING).
func (p *Process) send(to *Task, i signal.Info) linux.Errno {
	if p.host != nil {
		p.host.take(i.Signal)
		return 0
	}
	if p.signals == nil || p.ending {
		if i.Signal == signal.Kill {
			trace.KillExiting(traceProcess{p})
			p.dump.Abort()
		}
		return 0
	}
	var o signal.Outcome
	room := uint64(p.signals.Queued()) < p.limits[linux.RLIMIT_SIGPENDING].Cur
	if to != nil {
		o = to.signals.Send(i, room)
	} else {
		o = p.signals.Send(i, room)
	}
	p.notifyWatchers()
	switch {
	case o.Full:
		return linux.EAGAIN
	case o.Kill:
		p.end(int32(i.Signal))
		return 0
	}
	if o.Resume && p.stopped {
		p.resume()
		p.continued()
		trace.NotifyContinued(traceProcess{p})
	}
	for _, t := range p.tasks {
		if t.signals == o.Wake {
			t.alert()
		}
	}
	return 0
}

// continued reports the end of a stop to the parent. The caller holds System.mu.
func (p *Process) continued() {
	if parent := p.system.processes[p.node.Parent()]; p.node.Continue() && parent != nil {
		parent.childNews(p, signal.ChildContinued, int32(signal.Continue))
	}
}

// attend handles pending requests: it delivers signals, stops, or ends the task. It runs before the task returns to ring 3.
func (t *Task) attend() {
	p, s := t.process, t.process.system
	for {
		t.thread.Settle()
		t.alerted.Store(false)
		s.mu.Lock()
		if p.ending || t.dismissed.Load() {
			t.leaving = true
			s.mu.Unlock()
			return
		}
		if t.links.Traced != nil && trace.Job(traceTask{t}) {
			s.mu.Unlock()
			continue
		}
		if p.stopped && !t.roams() {
			trace.GroupStop(traceTask{t}, p.resumed)
			s.mu.Unlock()
			continue
		}
		d := t.nextDelivery()
		if p.ending {
			s.mu.Unlock()
			continue
		}
		again := t.again.Pending
		if d.Effect == signal.None && t.suspended { // a restarted call sets its signal mask again
			t.signals.Resume()
		}
		t.suspended = t.suspended && d.Effect != signal.None && d.Effect != signal.Handle
		switch d.Effect {
		case signal.Terminate:
			p.end(int32(d.Info.Signal))
		case signal.Core:
			t.endWithCore(d.Info)
		case signal.Suspend:
			t.stop(d.Info.Signal)
		}
		s.mu.Unlock()
		if d.Effect == signal.None || d.Effect == signal.Handle {
			if again {
				t.again.Pending = false
				if signal.Restarts(t.again.Kind, d) {
					t.repeat()
				}
			}
			if d.Effect == signal.None {
				return
			}
			step := trace.Stepping(traceTask{t})
			t.handle(d)
			if step {
				trace.Handler(traceTask{t})
			}
		}
	}
}

// stop stops the process by a signal, unless the signal comes from a terminal and the process group is orphaned. The caller
// holds System.mu.
func (t *Task) stop(n signal.Number) {
	p, s := t.process, t.process.system
	if n != signal.Stop && s.tree.Orphaned(p.node.Group) {
		return
	}
	if p.stopped { // the process was stopped already, and a tracer has resumed some of its threads
		trace.Rejoin(traceProcess{p})
		return
	}
	p.stopped, p.resumed, p.stopSignal = true, make(chan struct{}), n
	trace.StopBy(traceProcess{p}, traceTask{t})
	p.node.Stop(int32(n))
	p.notifyStop()
	if parent := s.processes[p.node.Parent()]; parent != nil {
		parent.childNews(p, signal.ChildStopped, int32(n))
	}
	for _, o := range p.tasks {
		if o != t {
			o.alert()
		}
	}
}
