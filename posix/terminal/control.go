package terminal

import "loam/abi/linux"

// Set changes the settings (TCSETS). Input that has not been read stays in the buffer. If the change turns ICANON on, that
// input becomes a line; if it turns ICANON off, the input is no longer divided into lines.
func (l *Line) Set(s linux.Termios) {
	old := l.settings
	// the only values that a pseudo-terminal supports: 8 bits without parity
	s.Control = s.Control&^(linux.CSIZE|linux.PARENB) | linux.CS8 | linux.CREAD
	l.settings = s
	if (old.Local^s.Local)&(linux.ICANON|linux.EXTPROC) != 0 {
		clear(l.ends)
		l.lines = 0
		if n := len(l.input); n > 0 && l.canonical() {
			l.ends[n-1], l.lines = true, n
		}
		l.erasing, l.literal = false, false
	}
	if old.Input&linux.IXON != 0 && !l.in(linux.IXON) && !l.held {
		l.start()
		l.showEchoes()
	}
	l.report(old)
	l.Type(nil)
}

// report records a change of settings for the master in packet mode.
func (l *Line) report(old linux.Termios) {
	if !l.packet {
		return
	}
	flow := func(t linux.Termios) bool {
		return t.Input&linux.IXON != 0 && t.Chars[linux.VSTOP] == control('S') && t.Chars[linux.VSTART] == control('Q')
	}
	if now := flow(l.settings); flow(old) != now {
		l.status &^= linux.TIOCPKT_DOSTOP | linux.TIOCPKT_NOSTOP
		if now {
			l.status |= linux.TIOCPKT_DOSTOP
		} else {
			l.status |= linux.TIOCPKT_NOSTOP
		}
	}
	if (old.Local|l.settings.Local)&linux.EXTPROC != 0 {
		l.status |= linux.TIOCPKT_IOCTL
	}
}

// Size returns the size of the window.
func (l *Line) Size() linux.Winsize { return l.size }

// Resize sets the size of the window.
func (l *Line) Resize(s linux.Winsize) bool {
	old := l.size
	l.size = s
	return old != s
}

// FlushInput discards input that no program has read (TCIFLUSH).
func (l *Line) FlushInput() {
	l.flushInput()
	l.Type(nil)
}

func (l *Line) flushInput() {
	l.cut(0)
	l.lines, l.erasing = 0, false
	if l.packet {
		l.status |= linux.TIOCPKT_FLUSHREAD
	}
}

// FlushOutput discards output that the master has not read (TCOFLUSH). It keeps the first bytes, which Linux would already
// have moved to the buffer of the master.
func (l *Line) FlushOutput() { l.flushOutput(len(l.output)) }

// flushOutput discards output that the master has not read. Of the first passed bytes it keeps at most kept, which the
// master has in its own buffer.
func (l *Line) flushOutput(passed int) {
	l.output = l.output[:min(len(l.output), passed, kept)]
	if l.packet {
		l.status |= linux.TIOCPKT_FLUSHWRITE
	}
}

// Stop stops the output until Start (TCOOFF, TCOON).
func (l *Line) Stop() {
	if !l.held {
		l.held = true
		l.stop()
	}
}

// Start ends the effect of Stop.
func (l *Line) Start() {
	if l.held {
		l.held = false
		l.start()
		l.showEchoes()
	}
}

// stop stops the output, as the key VSTOP does.
func (l *Line) stop() {
	if l.stopped {
		return
	}
	l.stopped = true
	if l.packet {
		l.status = l.status&^linux.TIOCPKT_START | linux.TIOCPKT_STOP
	}
}

func (l *Line) start() {
	if !l.stopped || l.held {
		return
	}
	l.stopped = false
	if l.packet {
		l.status = l.status&^linux.TIOCPKT_STOP | linux.TIOCPKT_START
	}
}

// Send sends the special character with an index of c_cc to the master (TCIOFF, TCION).
func (l *Line) Send(index int) {
	if c := l.settings.Chars[index]; c != disabled {
		l.output = append(l.output, c)
	}
}

// Packet switches packet mode on or off (TIOCPKT). InPacket reports whether it is on.
func (l *Line) Packet(on bool) {
	if on && !l.packet {
		l.status = 0
	}
	l.packet = on
}

// InPacket reports whether packet mode is on.
func (l *Line) InPacket() bool { return l.packet }

// FlushTyped discards bytes that the master has written and the terminal has not yet processed.
func (l *Line) FlushTyped() { l.typed = l.typed[:0] }

// FlushShown discards all output that the master has not read.
func (l *Line) FlushShown() {
	l.output = l.output[:0]
	l.showEchoes()
}
