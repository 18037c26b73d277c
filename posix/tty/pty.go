package tty

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

// The open files of the two ends of a pseudo-terminal: master and slave.

// Terminal is a pseudo-terminal (pty(7)).
type Terminal struct {
	all    *System
	number int
	node   *devpts.Node

	session, foreground int32 // session and foreground process group; 0: none; guarded by System.mu

	mu        sync.Mutex // guards the fields below; not held while waiters are notified or signals are sent
	line      *terminal.Line
	locks     linux.Termios // settings that programs cannot change (TIOCSLCKTRMIOS)
	master    *Master       // nil: the master is closed
	slaves    []*Slave
	opened    bool // a slave has been opened
	locked    bool // set by TIOCSPTLCK: the slave cannot be opened
	exclusive bool // set by TIOCEXCL: the slave cannot be opened again
}

// Master is the master end of a pseudo-terminal, which a terminal emulator uses.
type Master struct {
	*Terminal
	place fs.Place
	path  string
	q     file.Queue
}

// Slave is an open file of the slave end. Each open(2) creates one.
type Slave struct {
	*Terminal
	place fs.Place
	path  string
	q     file.Queue
	hung  bool // the master has been closed, or vhangup(2) was called; guarded by Terminal.mu
}

// Open creates a pseudo-terminal for a user (ptmx(4)), and returns its master. place and
// path identify its file. Errors: ENXIO, ENOSPC.
func (all *System) Open(uid uint32, place fs.Place, path string) (*Master, linux.Errno) {
	if all.files == nil {
		return nil, linux.ENXIO
	}
	number, node, err := all.files.Add(uid)
	if err != nil {
		return nil, file.ToErrno(err)
	}
	t := &Terminal{all: all, number: number, node: node, line: terminal.New(), locked: true}
	t.master = &Master{Terminal: t, place: place, path: path}
	all.mu.Lock()
	all.open[number] = t
	all.mu.Unlock()
	return t.master, 0
}

// OpenSlave opens the slave of a pseudo-terminal. Without O_NOCTTY in flags, the terminal may become the controlling terminal
// of the caller. Errors: EIO if it is locked or the master is closed, EBUSY.
func (t *Terminal) OpenSlave(c Caller, place fs.Place, path string, flags int) (*Slave, linux.Errno) {
	s := &Slave{Terminal: t, place: place, path: path}
	t.mu.Lock()
	switch {
	case t.locked || t.master == nil:
		t.mu.Unlock()
		return nil, linux.EIO
	case t.exclusive && len(t.slaves) > 0 && !c.May(linux.CAP_SYS_ADMIN):
		t.mu.Unlock()
		return nil, linux.EBUSY
	}
	t.slaves, t.opened = append(slices.Clone(t.slaves), s), true
	t.mu.Unlock()
	if flags&linux.O_NOCTTY == 0 && flags&linux.O_ACCMODE != linux.O_WRONLY {
		t.adopt(c)
	}
	return s, 0
}

// SlavePlace returns the file and the path of a terminal in /dev/pts. It returns the zero Place if that file system is not
// mounted.
func (t *Terminal) SlavePlace() (fs.Place, string) {
	v := fs.NewView(t.all.tree)
	path := "/dev/pts/" + strconv.Itoa(t.number)
	place, err := v.Lookup(v.Root, path, true)
	if err != nil || place.Node != fs.Node(t.node) {
		return fs.Place{}, path
	}
	return place, path
}

// Numbered returns the terminal with a number, or nil.
func (all *System) Numbered(n int) *Terminal {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.open[n]
}

// Console returns the terminal to which /dev/console refers, or nil.
func (all *System) Console() *Terminal {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.console
}

func (all *System) SetConsole(t *Terminal) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.console = t
}

// End is an open file of a terminal: a Master or a Slave.
type End interface {
	file.File
	// Of returns the terminal of the end, and Path the path by which the end was opened.
	Of() *Terminal
	Path() string
	// Place returns the file of the end in the file tree. It returns the zero Place if the end has none.
	Place() fs.Place
}

func (t *Terminal) Of() *Terminal { return t }

func (m *Master) Path() string    { return m.path }
func (s *Slave) Path() string     { return s.path }
func (m *Master) Place() fs.Place { return m.place }
func (s *Slave) Place() fs.Place  { return s.place }

// Name implements file.Named.
func (m *Master) Name() string { return m.path }

// Name implements file.Named.
func (s *Slave) Name() string { return s.path }

// notify notifies all waiters at both ends.
func (t *Terminal) notify() {
	t.mu.Lock()
	master, slaves := t.master, t.slaves // the slice of slaves is replaced when it changes, so it can be used without the lock
	e := file.PollOut
	if t.line.Readable(t.line.Least()) {
		e |= file.PollIn
	}
	t.mu.Unlock()
	if master != nil {
		master.q.Notify(file.PollIn | file.PollOut)
	}
	for _, s := range slaves {
		s.q.Notify(e)
	}
}

// Foreground returns the process group in the foreground; 0: none.
func (t *Terminal) Foreground() int32 {
	_, group := t.owners()
	return group
}

// deliver sends signals to the foreground process group.
func (t *Terminal) deliver(signals []int) {
	if len(signals) == 0 {
		return
	}
	_, foreground := t.owners()
	if foreground == 0 {
		return
	}
	for _, n := range signals {
		t.all.signals().SignalGroup(foreground, n)
	}
}

func (m *Master) Queue() *file.Queue { return &m.q }
func (m *Master) Mode() uint32       { return linux.S_IFCHR | 0o666 }

// Stat implements file.Described.
func (m *Master) Stat() file.Stat { return statOf(m.place) }

func statOf(p fs.Place) file.Stat { return file.Stat{Attr: p.Node.Attr(), On: p.Device()} }

// Events implements file.File. A terminal whose slaves are closed reports a hangup.
func (m *Master) Events() file.Events {
	m.mu.Lock()
	defer m.mu.Unlock()
	var e file.Events
	n, news := m.line.Shows()
	if n > 0 || news {
		e |= file.PollIn
	}
	if news {
		e |= file.PollPri
	}
	if m.line.Takes() {
		e |= file.PollOut
	}
	if m.opened && len(m.slaves) == 0 {
		e |= file.PollHup
	}
	return e
}

// Read implements file.File. Errors: EIO when all slaves are closed.
func (m *Master) Read(b []byte) (int, linux.Errno) {
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

// Write implements file.File. The bytes become input of the terminal, as if they were typed.
func (m *Master) Write(b []byte) (int, linux.Errno) {
	m.mu.Lock()
	n := m.line.Type(b)
	signals := m.line.Signals()
	m.mu.Unlock()
	if n == 0 && len(b) > 0 {
		return 0, linux.EAGAIN
	}
	m.deliver(signals)
	m.notify()
	return n, 0
}

// Buffered returns the number of bytes of output that the master can read (FIONREAD).
func (m *Master) Buffered() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, _ := m.line.Shows()
	return n
}

// Close closes the master. It hangs up the terminal and removes its file in /dev/pts.
func (m *Master) Close() {
	m.mu.Lock()
	m.master = nil
	m.mu.Unlock()
	m.hangUp()
	m.all.mu.Lock()
	delete(m.all.open, m.number)
	if m.all.console == m.Terminal {
		m.all.console = nil
	}
	m.all.mu.Unlock()
	m.all.files.Remove(m.number)
}

// hangUp makes all open slaves unusable (vhangup(2)).
func (t *Terminal) hangUp() {
	t.mu.Lock()
	slaves := t.slaves
	for _, s := range slaves {
		s.hung = true
	}
	t.line.FlushTyped()
	t.line.FlushInput()
	master := t.master
	t.mu.Unlock()
	t.hangUpSession()
	for _, s := range slaves {
		s.q.Notify(file.PollIn | file.PollOut | file.PollErr | file.PollHup)
	}
	if master != nil {
		master.q.Notify(file.PollIn | file.PollHup)
	}
}

func (s *Slave) Queue() *file.Queue { return &s.q }
func (s *Slave) Mode() uint32       { return uint32(s.node.Attr().Mode) }

// Stat implements file.Described.
func (s *Slave) Stat() file.Stat {
	if s.place == (fs.Place{}) {
		return file.Stat{Attr: s.node.Attr()}
	}
	return statOf(s.place)
}

// Events implements file.File.
func (s *Slave) Events() file.Events {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hung {
		return file.PollIn | file.PollOut | file.PollErr | file.PollHup
	}
	var e file.Events
	if s.line.Readable(s.line.Least()) {
		e |= file.PollIn
	}
	if s.line.Writable() {
		e |= file.PollOut
	}
	return e
}

// Read implements file.File. It does not wait and does not apply job control: see ReadFor.
func (s *Slave) Read(b []byte) (int, linux.Errno) {
	n, result := s.take(b)
	if result == nothing {
		return 0, linux.EAGAIN
	}
	return n, 0
}

// MayWrite checks that the caller may write: with TOSTOP, processes in the background may not. Errors: EINTR, EIO.
func (s *Slave) MayWrite(c Caller) linux.Errno {
	if !s.stopsBackground() {
		return 0
	}
	return s.inForeground(c, linux.SIGTTOU)
}

// stopsBackground reports whether a write by a process in the background stops that process (TOSTOP).
func (s *Slave) stopsBackground() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.line.Settings().Local&linux.TOSTOP != 0
}

// Write implements file.File: it writes output to the terminal. Errors: EIO after a hangup.
func (s *Slave) Write(b []byte) (int, linux.Errno) {
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

func (s *Slave) Buffered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.line.Pending()
}

// Close removes an open slave. When the last slave is closed, the master gets a hangup.
func (s *Slave) Close() {
	s.mu.Lock()
	s.slaves = slices.DeleteFunc(slices.Clone(s.slaves), func(o *Slave) bool { return o == s })
	last, master := len(s.slaves) == 0, s.master
	if last {
		s.exclusive = false
	}
	s.mu.Unlock()
	if last && master != nil {
		master.q.Notify(file.PollIn | file.PollHup)
	}
}

// Asynchronous implements file.Asynchronous.
func (m *Master) Asynchronous() {}

// Asynchronous implements file.Asynchronous.
func (s *Slave) Asynchronous() {}
