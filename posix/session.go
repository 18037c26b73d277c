package posix

import (
	"sync"
	"sync/atomic"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/devpts"
)

// Sessions and their controlling terminals (credentials(7), tty_ioctl(4)).

// terminals is the pseudo-terminals of a system, and the sessions that have one.
type terminals struct {
	system *devpts.FileSystem // nil: there are no pseudo-terminals
	tree   *fs.Tree
	groups atomic.Pointer[holder]

	mu       sync.Mutex // guards the fields below, and session and foreground of each terminal; a leaf
	open     map[int]*pty
	sessions map[int32]*session
	console  *pty // of /dev/console; nil: none
}

// session is a session that has a controlling terminal, or had one.
type session struct {
	terminal *pty  // nil: it has been hung up
	last     int32 // foreground process group of a terminal that was hung up
}

func (t *terminals) init(system *devpts.FileSystem, tree *fs.Tree) {
	t.system, t.tree = system, tree
	t.open, t.sessions = map[int]*pty{}, map[int32]*session{}
}

// controlling returns the controlling terminal of the process, or nil.
func (p *Process) controlling() *pty {
	_, _, id := p.job().IDs()
	t := &p.terminals
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[id]; s != nil && !p.detached.Load() {
		return s.terminal
	}
	return nil
}

// TerminalOf returns the device number of the controlling terminal of a session, and the foreground process group, as
// /proc/PID/stat shows them; zero and -1 without one.
func (s *System) TerminalOf(session int32) (device fs.Device, foreground int32) {
	s.terminals.mu.Lock()
	defer s.terminals.mu.Unlock()
	if of := s.terminals.sessions[session]; of != nil && of.terminal != nil {
		return devpts.DeviceOf(of.terminal.number), of.terminal.foreground
	}
	return fs.Device{}, -1
}

// Vhangup implements vhangup(2): it hangs up the controlling terminal. Errors: EPERM.
func (p *Process) Vhangup() Errno {
	if !p.may(linux.CAP_SYS_TTY_CONFIG) {
		return linux.EPERM
	}
	if t := p.controlling(); t != nil {
		t.hangUp(p)
	}
	return 0
}

// owners returns the session of a terminal and its foreground process group; 0: none.
func (t *pty) owners() (session, foreground int32) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	return t.session, t.foreground
}

// control makes a terminal the controlling terminal of the process's session (TIOCSCTTY). With steal, another session
// loses it. Errors: EPERM.
func (p *Process) control(t *pty, steal bool) Errno {
	pid, group, id := p.job().IDs()
	all := &p.terminals
	all.mu.Lock()
	defer all.mu.Unlock()
	if pid == id && t.session == id {
		return 0
	}
	if old := all.sessions[id]; pid != id || old != nil && old.terminal != nil {
		return linux.EPERM
	}
	if t.session != 0 {
		if !steal {
			return linux.EPERM
		}
		delete(all.sessions, t.session)
	}
	t.session, t.foreground = id, group
	all.sessions[id] = &session{terminal: t}
	p.detached.Store(false)
	return 0
}

// adopt makes a terminal that has been opened the controlling terminal, if the process is a session leader without one.
func (p *Process) adopt(t *pty) {
	if session, _ := t.owners(); session == 0 {
		p.control(t, false) // fails unless it is to be
	}
}

// disown ends the use of a terminal as controlling terminal (TIOCNOTTY): for the whole session if the process leads it.
// Errors: ENOTTY.
func (p *Process) disown(t *pty) Errno {
	if p.controlling() != t {
		return linux.ENOTTY
	}
	pid, _, id := p.job().IDs()
	if pid != id {
		p.detached.Store(true)
		return 0
	}
	foreground := p.terminals.release(id)
	if foreground != 0 {
		p.groupsOf().SignalGroup(foreground, linux.SIGHUP)
		p.groupsOf().SignalGroup(foreground, linux.SIGCONT)
	}
	return 0
}

// release takes the terminal from a session, and returns the foreground process group.
func (t *terminals) release(id int32) (foreground int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return 0
	}
	delete(t.sessions, id)
	if s.terminal == nil {
		return 0
	}
	foreground = s.terminal.foreground
	s.terminal.session, s.terminal.foreground = 0, 0
	return foreground
}

// EndSession does what the end of a process means for its controlling terminal, if the process leads its session: the
// foreground processes receive SIGHUP. After a hangup of the terminal, the processes that were in the foreground then
// receive SIGHUP and SIGCONT.
func (p *Process) EndSession(leader int32) {
	t := &p.terminals
	t.mu.Lock()
	last := int32(0)
	if s := t.sessions[leader]; s != nil && s.terminal == nil {
		last = s.last
	}
	t.mu.Unlock()
	foreground := t.release(leader)
	groups := p.groupsOf()
	switch {
	case foreground != 0:
		groups.SignalGroup(foreground, linux.SIGHUP)
	case last != 0:
		groups.SignalGroup(last, linux.SIGHUP)
		groups.SignalGroup(last, linux.SIGCONT)
	}
}

// hangUpSession takes a terminal that is hung up from its session, and signals the session leader.
func (p *Process) hangUpSession(t *pty) {
	all := &p.terminals
	all.mu.Lock()
	id := t.session
	if id != 0 {
		all.sessions[id] = &session{last: t.foreground}
		t.session, t.foreground = 0, 0
	}
	all.mu.Unlock()
	if id != 0 {
		p.groupsOf().SignalProcess(id, linux.SIGHUP)
		p.groupsOf().SignalProcess(id, linux.SIGCONT)
	}
}

// inForeground checks that the process may use its controlling terminal. A process in the background is stopped by the
// signal, and makes the call again when it continues: EINTR. If it cannot be stopped, a read fails with EIO, and other
// uses are allowed (tcsetpgrp(3), POSIX.1-2017, 11.1.4). Errors: EINTR, EIO.
func (p *Process) inForeground(t *pty, signal int) Errno {
	if p.controlling() != t {
		return 0
	}
	m := p.job()
	_, group, _ := m.IDs()
	_, foreground := t.owners()
	switch {
	case foreground == 0 || foreground == group:
		return 0
	case m.Ignores(signal):
		if signal == linux.SIGTTIN {
			return linux.EIO
		}
		return 0
	case m.Orphaned():
		return linux.EIO
	}
	m.SignalGroup(group, signal)
	return linux.EINTR
}

// setForeground implements TIOCSPGRP. Errors: ENOTTY, EINVAL, ESRCH, EPERM, EINTR.
func (p *Process) setForeground(t *pty, group int32) Errno {
	if errno := p.inForeground(t, linux.SIGTTOU); errno == linux.EIO {
		return linux.ENOTTY
	} else if errno != 0 {
		return errno
	}
	m := p.job()
	_, _, id := m.IDs()
	session, _ := t.owners()
	if group < 0 {
		return linux.EINVAL
	}
	if p.controlling() != t || session != id {
		return linux.ENOTTY
	}
	switch m.SessionOf(group) {
	case 0:
		return linux.ESRCH
	case id:
	default:
		return linux.EPERM
	}
	p.terminals.mu.Lock()
	defer p.terminals.mu.Unlock()
	if t.session == id {
		t.foreground = group
	}
	return 0
}
