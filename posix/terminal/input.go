package terminal

import "loam/abi/linux"

// Type receives bytes that the master has written. It returns the number of bytes that it has accepted, which is less than
// len(b) if the program does not read. Type(nil) processes bytes that were accepted earlier, after another call may have
// made room.
func (l *Line) Type(b []byte) int {
	n := min(len(b), typedSize-len(l.typed))
	l.typed = append(l.typed, b[:n]...)
	done := 0
	l.passed = len(l.output)
	for done < len(l.typed) && l.makeRoom() {
		l.receive(l.typed[done])
		if done++; len(l.echoes) >= echoBatch {
			l.showEchoes()
		}
	}
	l.typed = append(l.typed[:0], l.typed[done:]...)
	if l.local(linux.ECHO) || l.local(linux.ECHONL) {
		l.showEchoes()
	}
	return n
}

// Takes reports whether Type accepts a byte.
func (l *Line) Takes() bool { return len(l.typed) < typedSize }

// makeRoom reports whether the input has room for a character. If a line is too long, each new character replaces the last
// one, so that the end of the line is not lost.
func (l *Line) makeRoom() bool {
	if l.local(linux.ICANON) && l.lines == 0 && len(l.input) >= inputSize-1 {
		if len(l.input) >= inputSize {
			l.cut(inputSize - 1)
		}
		return true
	}
	room := inputSize - 1 - len(l.input)
	if l.in(linux.PARMRK) {
		room = inputSize - (len(l.input)*3+2)/3 - 1 // with PARMRK, a character can need three bytes
	}
	return room > 0
}

// receive processes one typed character.
func (l *Line) receive(c byte) {
	literal := l.literal
	l.literal = false
	if l.in(linux.ISTRIP) {
		c &= 0x7f
	}
	if l.in(linux.IUCLC) && l.local(linux.IEXTEN) && (c >= 'A' && c <= 'Z' || c >= 0xc0 && c <= 0xde && c != 0xd7) {
		c += 'a' - 'A'
	}
	switch {
	case literal:
		l.ordinary(c, false)
	case l.local(linux.EXTPROC):
		l.put(c, false)
	case l.flow(c) || l.key(c):
	default:
		l.text(c)
	}
}

// flow handles VSTART and VSTOP. It reports whether c is one of them.
func (l *Line) flow(c byte) bool {
	switch {
	case !l.in(linux.IXON):
		return false
	case l.is(c, linux.VSTART):
		l.start()
		l.showEchoes()
	case l.is(c, linux.VSTOP):
		l.stop()
	default:
		return false
	}
	return true
}

// key handles the characters that cause signals. It reports whether c is one of them.
func (l *Line) key(c byte) bool {
	if !l.local(linux.ISIG) {
		return false
	}
	for _, k := range [...]struct{ index, signal int }{
		{linux.VINTR, linux.SIGINT}, {linux.VQUIT, linux.SIGQUIT}, {linux.VSUSP, linux.SIGTSTP},
	} {
		if l.is(c, k.index) {
			l.signal(c, k.signal)
			return true
		}
	}
	return false
}

// signal records the signal of a key, and discards typed characters that have not been read.
func (l *Line) signal(c byte, n int) {
	l.signals = append(l.signals, n)
	if !l.local(linux.NOFLSH) {
		l.echoes = nil
		l.flushOutput(l.passed)
		l.flushInput()
	}
	if l.in(linux.IXON) {
		l.start()
	}
	if l.local(linux.ECHO) {
		l.echoChar(c)
	} else {
		l.showEchoes()
	}
}

// text handles all other characters: ends of lines, characters of editing, and text.
func (l *Line) text(c byte) {
	l.startByAny()
	newline := c == '\n' && l.canonical() // without ICANON, a newline is an ordinary character
	switch {
	case c == '\r' && l.in(linux.IGNCR):
		return
	case c == '\r' && l.in(linux.ICRNL):
		c, newline = '\n', true
	case c == '\n' && l.in(linux.INLCR):
		c, newline = '\r', false
	}
	if l.canonical() && l.edit(c) {
		return
	}
	l.ordinary(c, newline)
}

// startByAny starts stopped output at any character (IXANY).
func (l *Line) startByAny() {
	if l.stopped && !l.held && l.in(linux.IXON|linux.IXANY) {
		l.start()
		l.showEchoes()
	}
}

// ordinary appends a character without a special meaning to the input, and echoes it. If newline is set, it is echoed as a
// newline, and not as ^J.
func (l *Line) ordinary(c byte, newline bool) {
	l.startByAny()
	if l.local(linux.ECHO) {
		l.finishErasing()
		if newline {
			l.echoRaw(c)
		} else {
			l.echoFirst()
			l.echoChar(c)
		}
	}
	l.putText(c)
}

// putText appends a character to the input. With PARMRK, the byte 0xff is doubled.
func (l *Line) putText(c byte) {
	if c == 0xff && l.in(linux.PARMRK) {
		l.put(c, false)
	}
	l.put(c, false)
}

// put appends a byte to the input. end means that the byte ends a line.
func (l *Line) put(c byte, end bool) {
	if len(l.input) >= inputSize {
		return
	}
	l.input, l.ends = append(l.input, c), append(l.ends, end)
	if end {
		l.lines = len(l.input)
	}
}

// cut removes the end of the input, beginning with the byte whose index is the parameter
// from.
func (l *Line) cut(from int) { l.input, l.ends = l.input[:from], l.ends[:from] }
