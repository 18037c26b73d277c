package tty

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/fs/devpts"
)

// Requests of terminals (ioctl_tty(2)).

// Argument describes the argument of an ioctl(2) request of terminals: its size in bytes, and whether the request changes it
// (out). size is 0 for other requests.
func Argument(request int) (size int, out bool) {
	switch request {
	case linux.TCGETS, linux.TIOCGLCKTRMIOS:
		return linux.SizeofTermios, true
	case linux.TCGETA:
		return linux.SizeofTermio, true
	case linux.TCSETA, linux.TCSETAW, linux.TCSETAF:
		return linux.SizeofTermio, false
	case linux.TCGETS2:
		return linux.SizeofTermios2, true
	case linux.TCSETS, linux.TCSETSW, linux.TCSETSF, linux.TIOCSLCKTRMIOS:
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

// TakesValue reports whether the argument of an ioctl(2) of terminals is a number and not an address: see Value.
func TakesValue(request int) bool {
	switch request {
	case linux.TCSBRK, linux.TCSBRKP, linux.TCXONC, linux.TCFLSH, linux.TIOCSCTTY, linux.TIOCNOTTY, linux.TIOCEXCL, linux.TIOCNXCL,
		linux.TIOCGPTPEER, linux.TIOCSIG, linux.TIOCSBRK, linux.TIOCCBRK, linux.TIOCVHANGUP:
		return true
	}
	return false
}

// Request implements ioctl(2) for the requests of Argument. arg is a copy of the argument. Errors: ENOTTY, EIO after a hangup,
// and the request's own errors.
func (s *Slave) Request(c Caller, request int, arg []byte) linux.Errno {
	if s.isHung() {
		if request == linux.TIOCSPGRP {
			return linux.ENOTTY
		}
		return linux.EIO
	}
	return s.request(c, false, request, arg)
}

func (s *Slave) isHung() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hung
}

// Request implements ioctl(2) for the requests of Argument. arg is a copy of the argument. Errors: ENOTTY, and the request's
// own errors.
func (m *Master) Request(c Caller, request int, arg []byte) linux.Errno {
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
		return m.request(c, true, request, arg)
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

// request implements a request that is allowed on both ends. It has the same effect on either end, because it concerns the
// terminal and not the end.
func (t *Terminal) request(c Caller, master bool, request int, arg []byte) linux.Errno {
	switch request {
	case linux.TCGETS, linux.TCGETS2:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.line.Settings().Put(arg)
	case linux.TCGETA:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.line.Settings().PutTermio(arg)
	case linux.TCSETS, linux.TCSETSW, linux.TCSETSF, linux.TCSETS2, linux.TCSETS2 + 1, linux.TCSETSF2,
		linux.TCSETA, linux.TCSETAW, linux.TCSETAF:
		return t.set(c, request, arg)
	case linux.TIOCGLCKTRMIOS:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.locks.Put(arg)
	case linux.TIOCSLCKTRMIOS:
		if !c.May(linux.CAP_SYS_ADMIN) {
			return linux.EPERM
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.locks = linux.ParseTermios(arg)
	case linux.TIOCGWINSZ:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.line.Size().Put(arg)
	case linux.TIOCSWINSZ:
		t.mu.Lock()
		changed := t.line.Resize(linux.ParseWinsize(arg))
		t.mu.Unlock()
		if changed {
			t.deliver([]int{linux.SIGWINCH})
		}
	case linux.TIOCGPGRP, linux.TIOCGSID:
		session, foreground := t.owners()
		switch {
		case !master && t.all.Controlling(c) != t, request == linux.TIOCGSID && session == 0:
			return linux.ENOTTY
		case request == linux.TIOCGSID:
			foreground = session
		}
		putInt(arg, int(foreground))
	case linux.TIOCSPGRP:
		return t.setForeground(c, int32(intOf(arg)))
	case linux.TIOCGETD:
		putInt(arg, 0) // the only line discipline, N_TTY, has number 0
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
		return linux.EIO // TIOCSTI is disabled, as on Linux with dev.tty.legacy_tiocsti=0
	default:
		return linux.ENOTTY
	}
	return 0
}

// set implements TCSETS, TCSETA and their variants. TCSETSW does not wait for output, because output takes no time.
func (t *Terminal) set(c Caller, request int, arg []byte) linux.Errno {
	if errno := t.inForeground(c, linux.SIGTTOU); errno != 0 {
		return errno
	}
	t.mu.Lock()
	old := t.line.Settings()
	s := old
	if len(arg) == linux.SizeofTermio {
		s.SetTermio(arg)
	} else if s = linux.ParseTermios(arg); len(arg) < linux.SizeofTermios2 {
		s.InSpeed, s.OutSpeed = old.InSpeed, old.OutSpeed
	}
	if request == linux.TCSETSF || request == linux.TCSETSF2 || request == linux.TCSETAF {
		t.line.FlushInput()
	}
	t.line.Set(s.Locked(old, t.locks))
	signals := t.line.Signals()
	t.mu.Unlock()
	t.deliver(signals)
	t.notify()
	return 0
}

// Value implements ioctl(2) for the requests of TakesValue except TIOCGPTPEER: see Peer. flags are the flags of the description.
// Errors: ENOTTY, and the request's own errors.
func (m *Master) Value(c Caller, flags, request, arg int) linux.Errno {
	if request == linux.TIOCSIG {
		return m.signal(arg)
	}
	return m.value(c, true, flags, request, arg)
}

// Value implements ioctl(2) for the requests of TakesValue. flags are the flags of the description. Errors: ENOTTY, EIO after a
// hangup, and the request's own errors.
func (s *Slave) Value(c Caller, flags, request, arg int) linux.Errno {
	if s.isHung() || request == linux.TIOCGPTPEER {
		return linux.EIO
	}
	return s.value(c, false, flags, request, arg)
}

// Peer opens the slave of a master without its path (TIOCGPTPEER). Errors: EIO, EBUSY.
func (m *Master) Peer(c Caller, flags int) (*Slave, linux.Errno) {
	place, path := m.SlavePlace()
	m.mu.Lock()
	locked := m.locked
	m.mu.Unlock()
	if locked {
		return nil, linux.EIO
	}
	return m.OpenSlave(c, place, path, flags|linux.O_NOCTTY)
}

// signal implements TIOCSIG. Errors: EINVAL for a signal that no key sends.
func (m *Master) signal(signal int) linux.Errno {
	switch signal {
	case linux.SIGINT, linux.SIGQUIT, linux.SIGTSTP:
		m.deliver([]int{signal})
		return 0
	}
	return linux.EINVAL
}

// value implements a request that is allowed on both ends and whose argument is a number. master means that it was made on
// the master.
func (t *Terminal) value(c Caller, master bool, flags, request, arg int) linux.Errno {
	switch request {
	// a pseudo-terminal sends no break, and has no output to wait for
	case linux.TCSBRK, linux.TCSBRKP, linux.TIOCSBRK, linux.TIOCCBRK:
		return t.inForeground(c, linux.SIGTTOU)
	case linux.TCXONC, linux.TCFLSH:
		if errno := t.inForeground(c, linux.SIGTTOU); errno != 0 {
			return errno
		}
		errno, signals := t.flowOrFlush(master, request, arg)
		t.deliver(signals)
		t.notify()
		return errno
	case linux.TIOCSCTTY:
		root := c.May(linux.CAP_SYS_ADMIN)
		if flags&linux.O_ACCMODE == linux.O_WRONLY && !root {
			return linux.EPERM
		}
		return t.control(c, arg == 1 && root)
	case linux.TIOCNOTTY:
		if master {
			return linux.ENOTTY
		}
		return t.disown(c)
	case linux.TIOCEXCL, linux.TIOCNXCL:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.exclusive = request == linux.TIOCEXCL
		return 0
	case linux.TIOCVHANGUP:
		if !c.May(linux.CAP_SYS_ADMIN) {
			return linux.EPERM
		}
		t.hangUp()
		return 0
	}
	return linux.ENOTTY
}

// flowOrFlush implements TCXONC and TCFLSH. Errors: EINVAL.
func (t *Terminal) flowOrFlush(master bool, request, arg int) (linux.Errno, []int) {
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
	if master { // for the master, input is the output of the slave
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
