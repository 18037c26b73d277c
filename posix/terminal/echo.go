package terminal

import "loam/abi/linux"

// The queue of echoes. It holds operations and not characters, because the printed text depends on the column of the cursor
// when the operation is executed. Output may be stopped or full, so that may be later.

// echo is an operation in the queue of echoes.
type echo struct {
	kind     echoKind
	c        byte
	columns  int  // used by eraseTab: number of columns of text before the tab
	afterTab bool // used by eraseTab: columns are counted from the previous tab, and not from the beginning of the line
}

type echoKind uint8

const (
	show     echoKind = iota // print the character c, processed as output
	caret                    // print the control character c as ^X
	eraseTab                 // move the cursor back over a tab
	setEdge                  // record the current column of the cursor as the beginning of the edited line
	moveBack                 // decrement the recorded column of the cursor
)

// addEcho queues an operation. If the queue is full, the oldest operation is lost.
func (l *Line) addEcho(e echo) {
	if len(l.echoes) >= echoSize {
		l.echoes = append(l.echoes[:0], l.echoes[1:]...)
	}
	l.echoes = append(l.echoes, e)
}

// echoRaw echoes a character unchanged.
func (l *Line) echoRaw(c byte) { l.addEcho(echo{kind: show, c: c}) }

// echoChar echoes a character. A control character is echoed as ^X if ECHOCTL is set.
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
		if e.c == 0xff { // 0xff is dropped, because Linux uses this byte as a mark in its queue
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
