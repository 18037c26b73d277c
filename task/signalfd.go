package task

import (
	"slices"

	"loam/abi/linux"
	"loam/posix"
	"loam/posix/call"
	"loam/task/signal"
)

// This file supplies signals to files of signalfd(2): member implements posix.Signals.

var (
	_ posix.Signals  = member{}
	_ posix.Informer = member{}
)

// TakeSignal implements posix.Signals.
func (m member) TakeSignal(set uint64, info []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, ok := m.task.signals.Take(signal.Set(set))
	if !ok {
		return false
	}
	i.PutFile(info)
	return true
}

// SignalPending implements posix.Signals. Signals that are pending for any thread count.
func (m member) SignalPending(set uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.task.process.tasks {
		if t.signals.Pending()&signal.Set(set) != 0 {
			return true
		}
	}
	return false
}

// SendInfo implements posix.Informer.
func (m member) SendInfo(n int, code int32, value uint64, pid int32, uid uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.task.process.send(nil, signal.Info{Signal: signal.Number(n), Code: code, Value: value, PID: pid, UID: uid})
}

// WatchSignals implements posix.Signals.
func (m member) WatchSignals(notify func()) (stop func()) {
	p := m.task.process
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &notify
	p.watchers = append(p.watchers, w)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		p.watchers = slices.DeleteFunc(p.watchers, func(o *func()) bool { return o == w })
	}
}

// notifyWatchers reports a new signal to the signalfd files that watch the process. The caller holds
// System.mu.
func (p *Process) notifyWatchers() {
	for _, w := range p.watchers {
		(*w)()
	}
}

// signalfd implements signalfd(2) and signalfd4(2).
func signalfd(t *Task, a call.Args, flags int) (uint64, linux.Errno) {
	set, errno := t.set(a.A2, a.A3)
	if errno != 0 {
		return 0, errno
	}
	fd, errno := t.caller.Process.SignalFD(number(a.A1), uint64(set), flags)
	return uint64(fd), errno
}
