package terminal

import "loam/abi/linux"

// tabWidth is the distance of tab stops in columns.
const tabWidth = 8

// Write prints bytes of a program. It returns the number of bytes that it has accepted, which is less than len(b) if the
// output is stopped or if the master does not read.
func (l *Line) Write(b []byte) int {
	l.showEchoes()
	if !l.out(linux.OPOST) {
		n := min(len(b), l.room())
		l.output = append(l.output, b[:n]...)
		return n
	}
	for i, c := range b {
		if !l.process(c) {
			return i
		}
	}
	return len(b)
}

// Writable reports whether a program should write: the output is not stopped and has room.
func (l *Line) Writable() bool { return l.room() > 0 }

// room returns the number of bytes for which the output has room.
func (l *Line) room() int {
	if l.stopped {
		return 0
	}
	return outputSize - len(l.output)
}

// print appends bytes to the output. If there is no room for all of them, it appends none and returns false.
func (l *Line) print(b ...byte) bool {
	if l.room() < len(b) {
		return false
	}
	l.output = append(l.output, b...)
	return true
}

// process prints a character according to the output flags (OPOST). If there is no room, it does nothing and returns false.
// While the output is stopped, it returns false even for a character that prints nothing.
func (l *Line) process(c byte) bool {
	if l.room() == 0 {
		return false
	}
	switch c {
	case '\n':
		return l.newline()
	case '\r':
		return l.carriageReturn()
	case '\t':
		spaces := tabWidth - l.column%tabWidth
		if l.settings.Output&linux.TABDLY == linux.XTABS {
			if l.room() < spaces {
				return false
			}
			l.print([]byte("        ")[:spaces]...)
		} else {
			l.print(c)
		}
		l.column += spaces
		return true
	case '\b':
		l.column = max(l.column-1, 0)
	default:
		if isControl(c) {
			break
		}
		if l.out(linux.OLCUC) && (c >= 'a' && c <= 'z' || c >= 0xdf && c != 0xf7) {
			c -= 'a' - 'A'
		}
		if !l.continues(c) {
			l.column++
		}
	}
	return l.print(c)
}

// newline prints a newline, with ONLCR and ONLRET.
func (l *Line) newline() bool {
	if l.out(linux.ONLCR) {
		if !l.print('\r', '\n') {
			return false
		}
		l.column, l.edge = 0, 0
		return true
	}
	if l.out(linux.ONLRET) {
		l.column = 0
	}
	l.edge = l.column
	return l.print('\n')
}

// carriageReturn prints a carriage return, with ONOCR and OCRNL.
func (l *Line) carriageReturn() bool {
	if l.out(linux.ONOCR) && l.column == 0 {
		return true
	}
	if l.out(linux.OCRNL) {
		if l.out(linux.ONLRET) {
			l.column, l.edge = 0, 0
		}
		return l.print('\n')
	}
	l.column, l.edge = 0, 0
	return l.print('\r')
}
