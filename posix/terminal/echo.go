package terminal

import "loam/abi/linux"

// Echoes. They are a queue of operations and not of characters: what an operation prints depends on the column of the
// cursor at the time when it reaches the output, which may be stopped or full.

// echo is an operation.
type echo struct {
	kind     echoKind
	c        byte
	columns  int  // of eraseTab
	afterTab bool // for eraseTab: columns count from a tab, and not from the beginning of the line
}

type echoKind uint8

const (
	show     echoKind = iota // c, processed as output
	caret                    // c as ^X
	eraseTab                 // moves the cursor back over a tab
	setEdge                  // records that the edited line begins at the present column of the cursor
	moveBack                 // the column of the cursor is one less
)

// addEcho queues an operation. Without room, the oldest is lost.
func (l *Line) addEcho(e echo) {
	if len(l.echoes) >= echoSize {
		l.echoes = append(l.echoes[:0], l.echoes[1:]...)
	}
	l.echoes = append(l.echoes, e)
}

// echoRaw echoes a character as it is.
func (l *Line) echoRaw(c byte) { l.addEcho(echo{kind: show, c: c}) }

// echoChar echoes a character, as ^X if it is a control character (ECHOCTL).
func (l *Line) echoChar(c byte) {
	if l.local(linux.ECHOCTL) && isControl(c) && c != '\t' {
		l.addEcho(echo{kind: caret, c: c})
		return
	}
	l.echoRaw(c)
}

// echoFirst records the column of the cursor before the first character of a line.
func (l *Line) echoFirst() {
	if len(l.input) == l.lines {
		l.addEcho(echo{kind: setEdge})
	}
}

// showEchoes moves operations to the output, as far as it has room.
func (l *Line) showEchoes() {
	done := 0
	for done < len(l.echoes) && l.showEcho(l.echoes[done]) {
		done++
	}
	l.echoes = append(l.echoes[:0], l.echoes[done:]...)
}

// showEcho executes an operation. It returns false without an effect if the output has no room.
func (l *Line) showEcho(e echo) bool {
	switch e.kind {
	case show:
		if e.c == 0xff { // as Linux, which has a meaning of its own for this byte in the queue
			if !l.print(e.c) {
				return false
			}
			l.column++
			return true
		}
		if l.out(linux.OPOST) {
			return l.process(e.c)
		}
		return l.print(e.c)
	case caret:
		if !l.print('^', control(e.c)) {
			return false
		}
		l.column += 2
	case eraseTab:
		columns := e.columns
		if !e.afterTab {
			columns += l.edge
		}
		back := tabWidth - columns%tabWidth
		if l.room() < back {
			return false
		}
		for range back {
			l.print('\b')
			l.column = max(l.column-1, 0)
		}
	case setEdge:
		l.edge = l.column
	case moveBack:
		l.column = max(l.column-1, 0)
	}
	return true
}
