package terminal

import "loam/abi/linux"

// Editing of a line (ICANON). The edited line is the end of the input, after the complete lines.

// edit handles characters that edit or end a line. It reports whether c is one of them.
func (l *Line) edit(c byte) bool {
	extended := l.local(linux.IEXTEN)
	switch {
	case l.is(c, linux.VERASE), l.is(c, linux.VKILL), extended && l.is(c, linux.VWERASE):
		l.erase(c)
	case extended && l.is(c, linux.VLNEXT):
		l.literal = true
		if l.local(linux.ECHO) {
			l.finishErasing()
			if l.local(linux.ECHOCTL) {
				l.echoRaw('^')
				l.echoRaw('\b')
			}
		}
	case extended && l.local(linux.ECHO) && l.is(c, linux.VREPRINT):
		l.reprint(c)
	case c == '\n':
		if l.local(linux.ECHO) || l.local(linux.ECHONL) {
			l.echoRaw(c)
		}
		l.put(c, true)
	case l.is(c, linux.VEOF):
		l.put(disabled, true)
	case l.is(c, linux.VEOL), extended && l.is(c, linux.VEOL2):
		if l.local(linux.ECHO) {
			l.echoFirst()
			l.echoChar(c)
		}
		if c == 0xff && l.in(linux.PARMRK) {
			l.put(c, false)
		}
		l.put(c, true)
	default:
		return false
	}
	return true
}

// reprint echoes the edited line again, on a new line (VREPRINT).
func (l *Line) reprint(c byte) {
	l.finishErasing()
	l.echoChar(c)
	l.echoRaw('\n')
	for _, c := range l.input[l.lines:] {
		l.echoChar(c)
	}
}

// erase removes a character (VERASE), a word (VWERASE) or the whole edited line (VKILL).
func (l *Line) erase(c byte) {
	if len(l.input) == l.lines {
		return
	}
	one, word := l.is(c, linux.VERASE), false
	if !one {
		word = l.is(c, linux.VWERASE)
	}
	if !one && !word && !l.local(linux.ECHO|linux.ECHOK|linux.ECHOKE|linux.ECHOE) {
		l.kill()
		return
	}
	inWord := false
	for len(l.input) > l.lines {
		at := len(l.input) - 1
		for l.continues(l.input[at]) && at > l.lines {
			at--
		}
		first := l.input[at]
		if l.continues(first) { // a character of several bytes is erased only as a whole
			break
		}
		if word {
			if isWord(first) {
				inWord = true
			} else if inWord {
				break
			}
		}
		removed := l.input[at:len(l.input):len(l.input)]
		l.cut(at)
		if l.local(linux.ECHO) {
			l.echoErased(removed, one)
		}
		if one {
			break
		}
	}
	if len(l.input) == l.lines && l.local(linux.ECHO) {
		l.finishErasing()
	}
}

// kill removes the edited line on a terminal that cannot show the erasure of each character.
func (l *Line) kill() {
	l.cut(l.lines)
	if !l.local(linux.ECHO) {
		return
	}
	l.finishErasing()
	l.echoChar(l.settings.Chars[linux.VKILL])
	if l.local(linux.ECHOK) {
		l.echoRaw('\n')
	}
}

// echoErased shows that a character has been erased. one means that it was erased by VERASE.
func (l *Line) echoErased(removed []byte, one bool) {
	c := removed[0]
	switch {
	case l.local(linux.ECHOPRT):
		if !l.erasing {
			l.echoRaw('\\')
			l.erasing = true
		}
		l.echoChar(c)
		for _, more := range removed[1:] {
			l.echoRaw(more)
			l.addEcho(echo{kind: moveBack})
		}
	case one && !l.local(linux.ECHOE):
		l.echoChar(l.settings.Chars[linux.VERASE])
	case c == '\t':
		l.addEcho(l.erasedTab())
	default:
		if isControl(c) && l.local(linux.ECHOCTL) {
			l.rubOut()
		}
		if !isControl(c) || l.local(linux.ECHOCTL) {
			l.rubOut()
		}
	}
}

// rubOut clears the character in front of the cursor.
func (l *Line) rubOut() {
	for _, c := range [...]byte{'\b', ' ', '\b'} {
		l.echoRaw(c)
	}
}

// erasedTab returns the echo that removes a tab from the screen. The width of the tab depends on the number of columns between
// it and the previous tab, or the beginning of the line.
func (l *Line) erasedTab() echo {
	e := echo{kind: eraseTab}
	for at := len(l.input) - 1; at >= l.lines; at-- {
		switch c := l.input[at]; {
		case c == '\t':
			e.afterTab = true
			return e
		case isControl(c):
			if l.local(linux.ECHOCTL) {
				e.columns += 2
			}
		case !l.continues(c):
			e.columns++
		}
	}
	return e
}

// finishErasing prints the slash that ends an erasure with ECHOPRT.
func (l *Line) finishErasing() {
	if l.erasing {
		l.echoRaw('/')
		l.erasing = false
	}
}
