package posix

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/fs/devpts"
	"loam/posix/file"
)

// Requests of terminals (ioctl_tty(2)).

// TerminalArgument describes the argument of a request of terminals: it is memory of size bytes, which the request changes
// if out is set. It returns 0 for other requests.
func TerminalArgument(request int) (size int, out bool) {
	switch request {
	case linux.TCGETS:
		return linux.SizeofTermios, true
	case linux.TCGETS2:
		return linux.SizeofTermios2, true
	case linux.TCSETS, linux.TCSETSW, linux.TCSETSF:
		return linux.SizeofTermios, false
	case linux.TCSETS2, linux.TCSETS2 + 1, linux.TCSETSF2:
		return linux.SizeofTermios2, false
	case linux.TIOCGWINSZ:
		return linux.SizeofWinsize, true
	case linux.TIOCSWINSZ:
		return linux.SizeofWinsize, false
	case linux.TIOCGPGRP, linux.TIOCGSID, linux.TIOCGPTN, linux.TIOCGPTLCK, linux.TIOCGPKT, linux.TIOCGEXCL, linux.TIOCGETD, linux.TIOCGDEV:
		return 4, true
	case linux.TIOCSPGRP, linux.TIOCSPTLCK, linux.TIOCPKT, linux.TIOCSETD:
		return 4, false
	case linux.TIOCSTI:
		return 1, false
	}
	return 0, false
}

// TakesValue reports whether the argument of a request of terminals is a number: see TerminalValue.
func TakesValue(request int) bool {
	switch request {
	case linux.TCSBRK, linux.TCSBRKP, linux.TCXONC, linux.TCFLSH, linux.TIOCSCTTY, linux.TIOCNOTTY, linux.TIOCEXCL, linux.TIOCNXCL,
		linux.TIOCGPTPEER, linux.TIOCSIG, linux.TIOCSBRK, linux.TIOCCBRK, linux.TIOCVHANGUP:
		return true
	}
	return false
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
	case *ptyMaster:
		return p.masterRequest(f, request, arg)
	case *ptySlave:
		if f.isHung() {
			if request == linux.TIOCSPGRP {
				return linux.ENOTTY
			}
			return linux.EIO
		}
		return p.terminalRequest(f.pty, false, request, arg)
	}
	return linux.ENOTTY
}

// terminal passes a request to the terminal behind a standard stream. Requests that could do more than the settings of
// that terminal are refused: it belongs to the user of the machine.
func (s *stream) terminal(request int, arg []byte) Errno {
	switch request {
	case linux.TCGETS, linux.TCGETS2, linux.TCSETS, linux.TCSETSW, linux.TCSETSF, linux.TCSETS2, linux.TCSETS2 + 1, linux.TCSETSF2,
		linux.TIOCGWINSZ, linux.TIOCSWINSZ, linux.TIOCGPGRP, linux.TIOCSPGRP:
		return s.host.Ioctl(request, arg)
	}
	return linux.ENOTTY
}

// HostTerminal passes any request to the terminal behind a standard stream. It is for Loam itself. Errors: EBADF, ENOTTY.
func (p *Process) HostTerminal(fd, request int, arg []byte) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if s, ok := o.File.(*stream); ok {
		return s.host.Ioctl(request, arg)
	}
	return linux.ENOTTY
}

func (s *ptySlave) isHung() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hung
}

// masterRequest serves a request of a master.
func (p *Process) masterRequest(m *ptyMaster, request int, arg []byte) Errno {
	m.mu.Lock()
	value := -1
	switch request {
	case linux.TIOCGPTN:
		value = m.number
	case linux.TIOCGPTLCK:
		value = asInt(m.locked)
	case linux.TIOCGPKT:
		value = asInt(m.line.InPacket())
	case linux.TIOCSPTLCK:
		m.locked = intOf(arg) != 0
	case linux.TIOCPKT:
		m.line.Packet(intOf(arg) != 0)
	default:
		m.mu.Unlock()
		return p.terminalRequest(m.pty, true, request, arg)
	}
	m.mu.Unlock()
	if value >= 0 {
		putInt(arg, value)
	}
	return 0
}

func intOf(b []byte) int        { return int(int32(binary.LittleEndian.Uint32(b))) }
func putInt(b []byte, v int)    { binary.LittleEndian.PutUint32(b, uint32(v)) }
func asInt(on bool) (value int) { return map[bool]int{true: 1}[on] }

// terminalRequest serves a request that both ends have. It is about the slave, whose end is meant.
func (p *Process) terminalRequest(t *pty, master bool, request int, arg []byte) Errno {
	switch request {
	case linux.TCGETS, linux.TCGETS2:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.line.Settings().Put(arg)
	case linux.TCSETS, linux.TCSETSW, linux.TCSETSF, linux.TCSETS2, linux.TCSETS2 + 1, linux.TCSETSF2:
		return p.setTerminal(t, request, arg)
	case linux.TIOCGWINSZ:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.line.Size().Put(arg)
	case linux.TIOCSWINSZ:
		t.mu.Lock()
		changed := t.line.Resize(linux.ParseWinsize(arg))
		t.mu.Unlock()
		if changed {
			t.deliver(p.groupsOf(), []int{linux.SIGWINCH})
		}
	case linux.TIOCGPGRP, linux.TIOCGSID:
		session, foreground := t.owners()
		switch {
		case !master && p.controlling() != t, request == linux.TIOCGSID && session == 0:
			return linux.ENOTTY
		case request == linux.TIOCGSID:
			foreground = session
		}
		putInt(arg, int(foreground))
	case linux.TIOCSPGRP:
		return p.setForeground(t, int32(intOf(arg)))
	case linux.TIOCGETD:
		putInt(arg, 0) // N_TTY
	case linux.TIOCSETD:
		if intOf(arg) != 0 {
			return linux.EINVAL
		}
	case linux.TIOCGDEV:
		putInt(arg, int(devpts.DeviceOf(t.number).Number()))
	case linux.TIOCGEXCL:
		t.mu.Lock()
		defer t.mu.Unlock()
		putInt(arg, asInt(t.exclusive))
	case linux.TIOCSTI:
		return linux.EIO // as Linux with dev.tty.legacy_tiocsti=0
	default:
		return linux.ENOTTY
	}
	return 0
}

// setTerminal implements TCSETS and its variants. Output needs no time, so none waits for it.
func (p *Process) setTerminal(t *pty, request int, arg []byte) Errno {
	if errno := p.inForeground(t, linux.SIGTTOU); errno != 0 {
		return errno
	}
	t.mu.Lock()
	s := linux.ParseTermios(arg)
	if len(arg) < linux.SizeofTermios2 {
		old := t.line.Settings()
		s.InSpeed, s.OutSpeed = old.InSpeed, old.OutSpeed
	}
	if request == linux.TCSETSF || request == linux.TCSETSF2 {
		t.line.FlushInput()
	}
	t.line.Set(s)
	signals := t.line.Signals()
	t.mu.Unlock()
	t.deliver(p.groupsOf(), signals)
	t.notify()
	return 0
}

// TerminalValue implements ioctl(2) for the requests of TakesValue. Errors: EBADF, ENOTTY, EIO after a hangup, and the
// request's own errors.
func (p *Process) TerminalValue(fd, request, arg int) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	switch f := o.File.(type) {
	case *ptyMaster:
		switch request {
		case linux.TIOCGPTPEER:
			place, path := f.slavePlace()
			f.mu.Lock()
			locked := f.locked
			f.mu.Unlock()
			if locked {
				return -1, linux.EIO
			}
			return p.openSlave(f.pty, place, path, arg|linux.O_NOCTTY)
		case linux.TIOCSIG:
			return 0, p.masterSignal(f.pty, arg)
		}
		return 0, p.valueRequest(f.pty, f, o, request, arg)
	case *ptySlave:
		if f.isHung() || request == linux.TIOCGPTPEER {
			return -1, linux.EIO
		}
		return 0, p.valueRequest(f.pty, nil, o, request, arg)
	}
	return -1, linux.ENOTTY
}

// masterSignal implements TIOCSIG. Errors: EINVAL for a signal that no key sends.
func (p *Process) masterSignal(t *pty, signal int) Errno {
	switch signal {
	case linux.SIGINT, linux.SIGQUIT, linux.SIGTSTP:
		t.deliver(p.groupsOf(), []int{signal})
		return 0
	}
	return linux.EINVAL
}

// valueRequest serves a request that both ends have. m is the master if it is its end.
func (p *Process) valueRequest(t *pty, m *ptyMaster, o *file.Description, request, arg int) Errno {
	switch request {
	case linux.TCSBRK, linux.TCSBRKP, linux.TIOCSBRK, linux.TIOCCBRK: // there is no line that breaks, and no output that is late
		return p.inForeground(t, linux.SIGTTOU)
	case linux.TCXONC, linux.TCFLSH:
		if errno := p.inForeground(t, linux.SIGTTOU); errno != 0 {
			return errno
		}
		errno, signals := t.flowOrFlush(m != nil, request, arg)
		t.deliver(p.groupsOf(), signals)
		t.notify()
		return errno
	case linux.TIOCSCTTY:
		root := p.may(linux.CAP_SYS_ADMIN)
		if o.Flags.Load()&linux.O_ACCMODE == linux.O_WRONLY && !root {
			return linux.EPERM
		}
		return p.control(t, arg == 1 && root)
	case linux.TIOCNOTTY:
		if m != nil {
			return linux.ENOTTY
		}
		return p.disown(t)
	case linux.TIOCEXCL, linux.TIOCNXCL:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.exclusive = request == linux.TIOCEXCL
		return 0
	case linux.TIOCVHANGUP:
		if !p.may(linux.CAP_SYS_ADMIN) {
			return linux.EPERM
		}
		t.hangUp(p)
		return 0
	}
	return linux.ENOTTY
}

// flowOrFlush implements TCXONC and TCFLSH. Errors: EINVAL.
func (t *pty) flowOrFlush(master bool, request, arg int) (Errno, []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.line
	if request == linux.TCXONC {
		switch arg {
		case linux.TCOOFF:
			l.Stop()
		case linux.TCOON:
			l.Start()
		case linux.TCIOFF:
			l.Send(linux.VSTOP)
		case linux.TCION:
			l.Send(linux.VSTART)
		default:
			return linux.EINVAL, nil
		}
		return 0, l.Signals()
	}
	if arg < linux.TCIFLUSH || arg > linux.TCIOFLUSH {
		return linux.EINVAL, nil
	}
	input, output := arg != linux.TCOFLUSH, arg != linux.TCIFLUSH
	if master { // its input is the output of the slave
		if input {
			l.FlushShown()
		}
		if output {
			l.FlushTyped()
		}
		return 0, l.Signals()
	}
	if input {
		l.FlushInput()
	}
	if output {
		l.FlushOutput()
	}
	return 0, l.Signals()
}
