package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/fs/devpts"
	"loam/posix/file"
	"loam/posix/tty"
)

// Calls on terminals: see posix/tty.

// openMaster creates a pseudo-terminal (ptmx(4)). Errors: ENXIO, ENOSPC, EMFILE.
func (p *Process) openMaster(place fs.Place, path string, flags int) (int, Errno) {
	m, errno := p.terminals.Open(p.sight().Who.UID, place, path)
	return p.installEnd(m, flags, errno)
}

// openSlave opens the slave end of a pseudo-terminal. Errors: EIO if it is locked or the master is closed, EBUSY, EMFILE.
func (p *Process) openSlave(t *tty.Terminal, place fs.Place, path string, flags int) (int, Errno) {
	s, errno := t.OpenSlave(caller{p}, place, path, flags)
	return p.installEnd(s, flags, errno)
}

// installEnd allocates a descriptor for an end of a terminal. f and errno are the results of opening that end.
func (p *Process) installEnd(f file.File, flags int, errno Errno) (int, Errno) {
	if errno != 0 {
		return -1, errno
	}
	return p.installWith(f, flags&statusFlags, flags&linux.O_CLOEXEC != 0)
}

// openTerminalDevice opens a device file of a terminal: /dev/tty, /dev/console, /dev/ptmx, or a file of /dev/pts. Errors:
// ENXIO for other devices, and those of openMaster and openSlave.
func (p *Process) openTerminalDevice(place fs.Place, path string, flags int) (int, Errno) {
	d := place.Node.Attr().Device
	if number, ok := devpts.NumberOf(d); ok {
		t := p.terminals.Numbered(number)
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
		t := p.terminals.Console()
		if t == nil {
			return p.openTerminal(flags)
		}
		return p.openSlave(t, place, path, flags|linux.O_NOCTTY)
	case devpts.Multiplex:
		return p.openMaster(place, path, flags)
	}
	return -1, linux.ENXIO
}

// openTTY opens the controlling terminal, /dev/tty (tty(4)). For a program that has no session, it opens the terminal that
// is one of the standard streams. Errors: ENXIO without a terminal.
func (p *Process) openTTY(place fs.Place, path string, flags int) (int, Errno) {
	if t := p.terminals.Controlling(caller{p}); t != nil {
		return p.openSlave(t, place, path, flags|linux.O_NOCTTY)
	}
	if p.member != nil {
		return -1, linux.ENXIO
	}
	return p.openTerminal(flags)
}

// SetConsole makes /dev/console refer to the terminal of a descriptor. Errors: EBADF, ENOTTY.
func (p *Process) SetConsole(fd int) Errno {
	t, errno := p.terminalOf(fd)
	if errno != 0 {
		return errno
	}
	p.terminals.SetConsole(t)
	return 0
}

// terminalOf returns the pseudo-terminal of a descriptor. Errors: EBADF, ENOTTY.
func (p *Process) terminalOf(fd int) (*tty.Terminal, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, errno
	}
	if e, ok := o.File.(tty.End); ok {
		return e.Of(), 0
	}
	return nil, linux.ENOTTY
}

// terminalPlace returns the place in the file tree of the terminal that a descriptor refers to. It returns false if the
// descriptor is not a terminal or the terminal has no name there.
func (p *Process) terminalPlace(fd int) (fs.Place, bool) {
	if o := p.fds.Get(fd); o != nil {
		if e, ok := o.File.(tty.End); ok {
			return e.Place(), e.Place() != fs.Place{}
		}
	}
	return fs.Place{}, false
}

// TerminalOf returns the device number of the controlling terminal of a session, and the foreground process group, for
// /proc/PID/stat. It returns 0 and -1 if the session has no terminal.
func (s *System) TerminalOf(session int32) (device fs.Device, foreground int32) {
	return s.terminals.Of(session)
}

// EndSession handles the end of a process with respect to its controlling terminal, if the process leads its session: see
// tty.System.EndSession.
func (s *System) EndSession(leader int32) { s.terminals.EndSession(leader) }

// Vhangup implements vhangup(2): it hangs up the controlling terminal. Errors: EPERM.
func (p *Process) Vhangup() Errno { return p.terminals.Vhangup(caller{p}) }

// TerminalArgument describes the argument of an ioctl(2) request of terminals: see tty.Argument.
func TerminalArgument(request int) (size int, out bool) { return tty.Argument(request) }

// TakesValue reports whether the argument of an ioctl(2) request of terminals is a number: see TerminalValue.
func TakesValue(request int) bool { return tty.TakesValue(request) }

// HasTerminal reports whether the file of fd has requests of terminals.
func (p *Process) HasTerminal(fd int) bool {
	o, _ := p.get(fd)
	if o == nil {
		return false
	}
	_, isStream := o.File.(*stream)
	_, isEnd := o.File.(tty.End)
	return isStream || isEnd
}

// Terminal implements ioctl(2) for the requests of TerminalArgument. arg is a copy of the argument. Errors: EBADF, ENOTTY,
// EIO after a hangup, and the request's own errors.
func (p *Process) Terminal(fd, request int, arg []byte) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	switch f := o.File.(type) {
	case *stream:
		return f.terminal(request, arg)
	case *tty.Master:
		return f.Request(caller{p}, request, arg)
	case *tty.Slave:
		return f.Request(caller{p}, request, arg)
	}
	return linux.ENOTTY
}

// TerminalValue implements ioctl(2) for the requests of TakesValue. Errors: EBADF, ENOTTY, EIO after a hangup, and the
// request's own errors.
func (p *Process) TerminalValue(fd, request, arg int) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	flags := int(o.Flags.Load())
	switch f := o.File.(type) {
	case *tty.Master:
		if request == linux.TIOCGPTPEER {
			s, errno := f.Peer(caller{p}, arg)
			return p.installEnd(s, arg, errno)
		}
		return 0, f.Value(caller{p}, flags, request, arg)
	case *tty.Slave:
		return 0, f.Value(caller{p}, flags, request, arg)
	}
	return -1, linux.ENOTTY
}
