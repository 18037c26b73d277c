package terminal

import "loam/abi/linux"

// Readable reports whether a read returns input: with ICANON a complete line, otherwise
// the minimum number of bytes, least.
func (l *Line) Readable(least int) bool {
	if l.ByLines() {
		return l.lines > 0
	}
	return len(l.input) >= max(least, 1)
}

// ByLines reports whether programs read lines, which means that ICANON is on.
func (l *Line) ByLines() bool { return l.canonical() && !l.local(linux.EXTPROC) }

// Read moves input to b and returns the number of bytes. With ICANON it moves one line, or the part of it that fits into b;
// otherwise it moves as much input as fits. For an empty line that was ended by VEOF it returns 0, the end of the file.
// Readable must have returned true.
func (l *Line) Read(b []byte) int {
	n, taken := min(len(b), len(l.input)), 0
	if l.ByLines() {
		n, taken = l.line(b)
	} else {
		taken = n
	}
	copy(b, l.input[:n])
	l.input = append(l.input[:0], l.input[taken:]...)
	l.ends = append(l.ends[:0], l.ends[taken:]...)
	l.lines = max(l.lines-taken, 0)
	l.Type(nil)
	return n
}

// line returns the size of the next line, or of its part that fits into b. taken includes a VEOF at the end of the line,
// which is removed from the input; n does not.
func (l *Line) line(b []byte) (n, taken int) {
	for n < l.lines && n < len(b) {
		end := l.ends[n]
		if end && l.input[n] == disabled {
			return n, n + 1
		}
		if n++; end {
			return n, n
		}
	}
	if n < l.lines && n > 0 && l.ends[n] && l.input[n] == disabled { // b is full: remove the VEOF as well, so that the next read does not return an empty line
		return n, n + 1
	}
	return n, n
}

// Pending returns the number of bytes that a program can read (FIONREAD).
func (l *Line) Pending() int {
	if !l.ByLines() {
		return len(l.input)
	}
	n := l.lines
	for i := range l.lines {
		if l.ends[i] && l.input[i] == disabled {
			n--
		}
	}
	return n
}

// Waits returns how a read without ICANON waits: least is the number of bytes that it waits for (VMIN), and tenths the
// time in tenths of a second (VTIME). With ICANON a read waits for a line, and least is 1.
func (l *Line) Waits() (least, tenths int) {
	if l.ByLines() {
		return 1, 0
	}
	return int(l.settings.Chars[linux.VMIN]), int(l.settings.Chars[linux.VTIME])
}

// Least returns the number of input bytes from which on poll(2) reports the terminal as readable.
func (l *Line) Least() int {
	if least, tenths := l.Waits(); tenths == 0 {
		return max(least, 1)
	}
	return 1
}

// Show moves output to b, for the master. In packet mode the first byte is the status, and a changed status is returned
// without output.
func (l *Line) Show(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	at := 0
	if l.packet {
		if l.status != 0 {
			b[0], l.status = l.status, 0
			return 1
		}
		if len(l.output) == 0 {
			return 0
		}
		b[0], at = linux.TIOCPKT_DATA, 1
	}
	n := copy(b[at:], l.output)
	l.output = append(l.output[:0], l.output[n:]...)
	l.showEchoes()
	return at + n
}

// Shows returns the number of bytes of output, and whether packet mode has a changed status to return.
func (l *Line) Shows() (n int, news bool) { return len(l.output), l.packet && l.status != 0 }
