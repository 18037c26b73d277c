package tty

import (
	"sync"
	"sync/atomic"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/devpts"
)

// Sessions and their controlling terminals (credentials(7), tty_ioctl(4)).

// System holds the pseudo-terminals of a system, and the sessions that have a controlling terminal.
type System struct {
	files  *devpts.FileSystem // nil: the system has no pseudo-terminals
	tree   *fs.Tree
	groups atomic.Pointer[Groups]

	// guards the fields below, and the fields session and foreground of each terminal; no other lock is acquired while it is
	// held
	mu       sync.Mutex
	open     map[int]*Terminal
	sessions map[int32]*session
	console  *Terminal // terminal to which /dev/console refers; nil: none
}

// session is a session that has a controlling terminal, or had one.
type session struct {
	terminal *Terminal // nil: the terminal has been hung up
	last     int32     // process group that was in the foreground when the terminal was hung up
}

// Init sets the file system of pseudo-terminals (nil: none), the tree in which it is mounted at /dev/pts, and the component
// that sends signals of terminals. It is called once, before the System is used.
func (t *System) Init(files *devpts.FileSystem, tree *fs.Tree, g Groups) {
	t.files, t.tree = files, tree
	t.open, t.sessions = map[int]*Terminal{}, map[int32]*session{}
	t.SetGroups(g)
}

// SetGroups replaces the component that sends signals of terminals.
func (t *System) SetGroups(g Groups) { t.groups.Store(&g) }

// Signals returns the component that sends the signals of terminals.
func (t *System) Signals() Groups { return t.signals() }

func (t *System) signals() Groups { return *t.groups.Load() }

// Controlling returns the controlling terminal of the caller's process, or nil.
func (t *System) Controlling(c Caller) *Terminal {
	_, _, id := c.IDs()
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sessions[id]; s != nil && !c.Detached() {
		return s.terminal
	}
	return nil
}

// Of returns the device number of the controlling terminal of a session, and the foreground process group, for
// /proc/PID/stat. It returns 0 and -1 if the session has no terminal.
func (t *System) Of(session int32) (device fs.Device, foreground int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.sessions[session]; of != nil && of.terminal != nil {
		return devpts.DeviceOf(of.terminal.number), of.terminal.foreground
	}
	return fs.Device{}, -1
}

// Vhangup implements vhangup(2): it hangs up the controlling terminal. Errors: EPERM.
func (t *System) Vhangup(c Caller) linux.Errno {
	if !c.May(linux.CAP_SYS_TTY_CONFIG) {
		return linux.EPERM
	}
	if x := t.Controlling(c); x != nil {
		x.hangUp()
	}
	return 0
}

// owners returns the session and the foreground process group of a terminal; 0 means none.
func (t *Terminal) owners() (session, foreground int32) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	return t.session, t.foreground
}

// control makes a terminal the controlling terminal of the process's session (TIOCSCTTY). With steal, the terminal is taken
// from another session. Errors: EPERM.
func (t *Terminal) control(c Caller, steal bool) linux.Errno {
	pid, group, id := c.IDs()
	all := t.all
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
	c.Detach(false)
	return 0
}

// adopt is called when a terminal is opened. If the process is a session leader without a controlling terminal, the terminal
// becomes its controlling terminal.
func (t *Terminal) adopt(c Caller) {
	if session, _ := t.owners(); session == 0 {
		t.control(c, false) // an error means that the terminal does not become the controlling terminal
	}
}

// disown implements TIOCNOTTY: the process stops using its controlling terminal. If the process leads its session, all
// processes of the session do. Errors: ENOTTY.
func (t *Terminal) disown(c Caller) linux.Errno {
	if t.all.Controlling(c) != t {
		return linux.ENOTTY
	}
	pid, _, id := c.IDs()
	if pid != id {
		c.Detach(true)
		return 0
	}
	foreground := t.all.release(id)
	if foreground != 0 {
		t.all.signals().SignalGroup(foreground, linux.SIGHUP)
		t.all.signals().SignalGroup(foreground, linux.SIGCONT)
	}
	return 0
}

// release removes the controlling terminal of a session, and returns the terminal's foreground process group.
func (t *System) release(id int32) (foreground int32) {
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

// EndSession handles the end of a process that leads its session. The processes in the foreground of its controlling
// terminal receive SIGHUP. If the terminal was hung up before, the processes that were in the foreground then receive SIGHUP
// and SIGCONT.
func (t *System) EndSession(leader int32) {
	t.mu.Lock()
	last := int32(0)
	if s := t.sessions[leader]; s != nil && s.terminal == nil {
		last = s.last
	}
	t.mu.Unlock()
	foreground := t.release(leader)
	groups := t.signals()
	switch {
	case foreground != 0:
		groups.SignalGroup(foreground, linux.SIGHUP)
	case last != 0:
		groups.SignalGroup(last, linux.SIGHUP)
		groups.SignalGroup(last, linux.SIGCONT)
	}
}

// hangUpSession removes a terminal that is hung up from its session, and signals the session leader.
func (t *Terminal) hangUpSession() {
	all := t.all
	all.mu.Lock()
	id := t.session
	if id != 0 {
		all.sessions[id] = &session{last: t.foreground}
		t.session, t.foreground = 0, 0
	}
	all.mu.Unlock()
	if id != 0 {
		all.signals().SignalProcess(id, linux.SIGHUP)
		all.signals().SignalProcess(id, linux.SIGCONT)
	}
}

// inForeground checks that the process of the caller may use its controlling terminal. A process in the background is
// stopped by signal, and the result is EINTR: the call is made again when the process continues. If the process cannot be
// stopped, a read fails with EIO, and other uses are allowed (tcsetpgrp(3), POSIX.1-2017, 11.1.4). Errors: EINTR, EIO.
func (t *Terminal) inForeground(c Caller, signal int) linux.Errno {
	if t.all.Controlling(c) != t {
		return 0
	}
	_, group, _ := c.IDs()
	_, foreground := t.owners()
	switch {
	case foreground == 0 || foreground == group:
		return 0
	case c.Ignores(signal):
		if signal == linux.SIGTTIN {
			return linux.EIO
		}
		return 0
	case c.Orphaned():
		return linux.EIO
	}
	c.SignalGroup(group, signal)
	return linux.EINTR
}

// setForeground implements TIOCSPGRP. Errors: ENOTTY, EINVAL, ESRCH, EPERM, EINTR.
func (t *Terminal) setForeground(c Caller, group int32) linux.Errno {
	if errno := t.inForeground(c, linux.SIGTTOU); errno == linux.EIO {
		return linux.ENOTTY
	} else if errno != 0 {
		return errno
	}
	_, _, id := c.IDs()
	session, _ := t.owners()
	if group < 0 {
		return linux.EINVAL
	}
	if t.all.Controlling(c) != t || session != id {
		return linux.ENOTTY
	}
	switch c.SessionOf(group) {
	case 0:
		return linux.ESRCH
	case id:
	default:
		return linux.EPERM
	}
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	if t.session == id {
		t.foreground = group
	}
	return 0
}
