package posix

import (
	"slices"
	"strconv"
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/devpts"
	"loam/posix/file"
	"loam/posix/terminal"
)

// Pseudo-terminals (pty(7)). A terminal has a master, which /dev/ptmx creates, and any number of open slaves. Package
// terminal processes input and output. This file has the open files of both ends, their waiting and their end.

// pty is a pseudo-terminal.
type pty struct {
	all    *terminals
	number int
	node   *devpts.Node

	session, foreground int32 // guarded by all.mu; 0: none

	mu        sync.Mutex // guards the fields below; not held while waiters are notified or signals are sent
	line      *terminal.Line
	master    *ptyMaster // nil: closed
	slaves    []*ptySlave
	opened    bool // a slave has been opened
	locked    bool // TIOCSPTLCK
	exclusive bool // TIOCEXCL
}

// ptyMaster is the master end of a pseudo-terminal, which a terminal emulator uses.
type ptyMaster struct {
	*pty
	place fs.Place
	path  string
	q     file.Queue
	p     *Process // who has opened it
}

// ptySlave is an open slave. Each open(2) makes one.
type ptySlave struct {
	*pty
	place fs.Place
	path  string
	q     file.Queue
	hung  bool // the master has been closed, or the terminal hung up; guarded by pty.mu
}

// openMaster creates a pseudo-terminal (ptmx(4)). Errors: ENXIO, ENOSPC, EMFILE.
func (p *Process) openMaster(place fs.Place, path string, flags int) (int, Errno) {
	all := &p.terminals
	if all.system == nil {
		return -1, linux.ENXIO
	}
	number, node, err := all.system.Add(p.sight().Who.UID)
	if err != nil {
		return -1, file.ToErrno(err)
	}
	t := &pty{all: all, number: number, node: node, line: terminal.New(), locked: true}
	t.master = &ptyMaster{pty: t, place: place, path: path, p: p}
	all.mu.Lock()
	all.open[number] = t
	all.mu.Unlock()
	return p.installWith(t.master, flags&statusFlags, flags&linux.O_CLOEXEC != 0)
}

// openSlave opens a pseudo-terminal. Errors: EIO if it is locked or the master is closed, EBUSY, EMFILE.
func (p *Process) openSlave(t *pty, place fs.Place, path string, flags int) (int, Errno) {
	s := &ptySlave{pty: t, place: place, path: path}
	t.mu.Lock()
	switch {
	case t.locked || t.master == nil:
		t.mu.Unlock()
		return -1, linux.EIO
	case t.exclusive && len(t.slaves) > 0 && !p.may(linux.CAP_SYS_ADMIN):
		t.mu.Unlock()
		return -1, linux.EBUSY
	}
	t.slaves, t.opened = append(slices.Clone(t.slaves), s), true
	t.mu.Unlock()
	if flags&linux.O_NOCTTY == 0 && flags&linux.O_ACCMODE != linux.O_WRONLY {
		p.adopt(t)
	}
	return p.installWith(s, flags&statusFlags, flags&linux.O_CLOEXEC != 0)
}

// slavePlace returns the file of a terminal in /dev/pts, or the zero place if it is not mounted there.
func (t *pty) slavePlace() (fs.Place, string) {
	v := fs.NewView(t.all.tree)
	path := "/dev/pts/" + strconv.Itoa(t.number)
	place, err := v.Lookup(v.Root, path, true)
	if err != nil || place.Node != fs.Node(t.node) {
		return fs.Place{}, path
	}
	return place, path
}

// openTerminalDevice opens a device file of a terminal: /dev/tty, /dev/console, /dev/ptmx, or a file of /dev/pts. Errors:
// ENXIO for other devices, and those of openMaster and openSlave.
func (p *Process) openTerminalDevice(place fs.Place, path string, flags int) (int, Errno) {
	d := place.Node.Attr().Device
	if number, ok := devpts.NumberOf(d); ok {
		p.terminals.mu.Lock()
		t := p.terminals.open[number]
		p.terminals.mu.Unlock()
		if t == nil {
			return -1, linux.EIO
		}
		return p.openSlave(t, place, path, flags)
	}
	if d.Major != devpts.Terminal {
		return -1, linux.ENXIO
	}
	switch d.Minor {
	case devpts.TTY:
		return p.openTTY(place, path, flags)
	case devpts.Console:
		p.terminals.mu.Lock()
		t := p.terminals.console
		p.terminals.mu.Unlock()
		if t == nil {
			return p.openTerminal(flags)
		}
		return p.openSlave(t, place, path, flags|linux.O_NOCTTY)
	case devpts.Multiplex:
		return p.openMaster(place, path, flags)
	}
	return -1, linux.ENXIO
}

// openTTY opens the controlling terminal (tty(4)). A program without a session of its own has the terminal among its
// standard streams. Errors: ENXIO without a terminal.
func (p *Process) openTTY(place fs.Place, path string, flags int) (int, Errno) {
	if t := p.controlling(); t != nil {
		return p.openSlave(t, place, path, flags|linux.O_NOCTTY)
	}
	if p.member != nil {
		return -1, linux.ENXIO
	}
	return p.openTerminal(flags)
}

// SetConsole makes the terminal of a descriptor /dev/console. Errors: EBADF, ENOTTY.
func (p *Process) SetConsole(fd int) Errno {
	t, errno := p.terminalOf(fd)
	if errno != 0 {
		return errno
	}
	p.terminals.mu.Lock()
	defer p.terminals.mu.Unlock()
	p.terminals.console = t
	return 0
}

// terminalOf returns the pseudo-terminal of a descriptor. Errors: EBADF, ENOTTY.
func (p *Process) terminalOf(fd int) (*pty, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, errno
	}
	switch f := o.File.(type) {
	case *ptyMaster:
		return f.pty, 0
	case *ptySlave:
		return f.pty, 0
	}
	return nil, linux.ENOTTY
}

// terminalPlace returns the file of a descriptor that is a terminal, and whether it has one.
func (p *Process) terminalPlace(fd int) (fs.Place, bool) {
	if o := p.fds.Get(fd); o != nil {
		switch f := o.File.(type) {
		case *ptyMaster:
			return f.place, f.place != fs.Place{}
		case *ptySlave:
			return f.place, f.place != fs.Place{}
		}
	}
	return fs.Place{}, false
}

// notify notifies all waiters at both ends.
func (t *pty) notify() {
	t.mu.Lock()
	master, slaves := t.master, t.slaves // replaced, never modified
	e := PollOut
	if t.line.Readable(t.line.Least()) {
		e |= PollIn
	}
	t.mu.Unlock()
	if master != nil {
		master.q.Notify(PollIn | PollOut)
	}
	for _, s := range slaves {
		s.q.Notify(e)
	}
}

// deliver sends signals to the foreground process group.
func (t *pty) deliver(groups Groups, signals []int) {
	if len(signals) == 0 {
		return
	}
	_, foreground := t.owners()
	if foreground == 0 {
		return
	}
	for _, n := range signals {
		groups.SignalGroup(foreground, n)
	}
}

func (m *ptyMaster) Queue() *file.Queue { return &m.q }
func (m *ptyMaster) Mode() uint32       { return linux.S_IFCHR | 0o666 }
func (m *ptyMaster) stat() Stat         { return statOf(m.place) }

// Events implements file. A terminal whose slaves are closed reports a hangup.
func (m *ptyMaster) Events() Events {
	m.mu.Lock()
	defer m.mu.Unlock()
	var e Events
	n, news := m.line.Shows()
	if n > 0 || news {
		e |= PollIn
	}
	if news {
		e |= PollPri
	}
	if m.line.Takes() {
		e |= PollOut
	}
	if m.opened && len(m.slaves) == 0 {
		e |= PollHup
	}
	return e
}

// Read implements file. Errors: EIO when all slaves are closed.
func (m *ptyMaster) Read(b []byte) (int, Errno) {
	m.mu.Lock()
	n := m.line.Show(b)
	gone := m.opened && len(m.slaves) == 0
	m.mu.Unlock()
	switch {
	case n > 0:
		m.notify()
		return n, 0
	case len(b) == 0:
		return 0, 0
	case gone:
		return 0, linux.EIO
	}
	return 0, linux.EAGAIN
}

// Write implements file: it types.
func (m *ptyMaster) Write(b []byte) (int, Errno) {
	m.mu.Lock()
	n := m.line.Type(b)
	signals := m.line.Signals()
	m.mu.Unlock()
	if n == 0 && len(b) > 0 {
		return 0, linux.EAGAIN
	}
	m.deliver(m.p.groupsOf(), signals)
	m.notify()
	return n, 0
}

// Buffered returns the bytes of output, for FIONREAD.
func (m *ptyMaster) Buffered() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, _ := m.line.Shows()
	return n
}

// Close hangs the terminal up, and removes its file.
func (m *ptyMaster) Close() {
	m.mu.Lock()
	m.master = nil
	m.mu.Unlock()
	m.hangUp(m.p)
	m.all.mu.Lock()
	delete(m.all.open, m.number)
	if m.all.console == m.pty {
		m.all.console = nil
	}
	m.all.mu.Unlock()
	m.all.system.Remove(m.number)
}

// hangUp ends the use of all open slaves (vhangup(2)).
func (t *pty) hangUp(p *Process) {
	t.mu.Lock()
	slaves := t.slaves
	for _, s := range slaves {
		s.hung = true
	}
	t.line.FlushTyped()
	t.line.FlushInput()
	master := t.master
	t.mu.Unlock()
	p.hangUpSession(t)
	for _, s := range slaves {
		s.q.Notify(PollIn | PollOut | PollErr | PollHup)
	}
	if master != nil {
		master.q.Notify(PollIn | PollHup)
	}
}

func (s *ptySlave) Queue() *file.Queue { return &s.q }
func (s *ptySlave) Mode() uint32       { return uint32(s.node.Attr().Mode) }

// stat implements described.
func (s *ptySlave) stat() Stat {
	if s.place == (fs.Place{}) {
		return Stat{Attr: s.node.Attr()}
	}
	return statOf(s.place)
}

// Events implements file.
func (s *ptySlave) Events() Events {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hung {
		return PollIn | PollOut | PollErr | PollHup
	}
	var e Events
	if s.line.Readable(s.line.Least()) {
		e |= PollIn
	}
	if s.line.Writable() {
		e |= PollOut
	}
	return e
}

// Read implements file. It is a read that does not wait, without regard to job control: see readTerminal.
func (s *ptySlave) Read(b []byte) (int, Errno) {
	n, result := s.take(b)
	if result == nothing {
		return 0, linux.EAGAIN
	}
	return n, 0
}

// stopsBackground reports whether writes of processes in the background stop them (TOSTOP).
func (s *ptySlave) stopsBackground() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.line.Settings().Local&linux.TOSTOP != 0
}

// Write implements file: it prints. Errors: EIO after a hangup.
func (s *ptySlave) Write(b []byte) (int, Errno) {
	s.mu.Lock()
	if s.hung {
		s.mu.Unlock()
		return 0, linux.EIO
	}
	n := s.line.Write(b)
	s.mu.Unlock()
	if n == 0 && len(b) > 0 {
		return 0, linux.EAGAIN
	}
	s.notify()
	return n, 0
}

func (s *ptySlave) Buffered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.line.Pending()
}

// Close removes the slave. The master finds out when it was the last.
func (s *ptySlave) Close() {
	s.mu.Lock()
	s.slaves = slices.DeleteFunc(slices.Clone(s.slaves), func(o *ptySlave) bool { return o == s })
	last, master := len(s.slaves) == 0, s.master
	if last {
		s.exclusive = false
	}
	s.mu.Unlock()
	if last && master != nil {
		master.q.Notify(PollIn | PollHup)
	}
}

// Asynchronous implements file.Asynchronous.
func (m *ptyMaster) Asynchronous() {}

// Asynchronous implements file.Asynchronous.
func (s *ptySlave) Asynchronous() {}
