package terminal

import "loam/abi/linux"

// Sizes of buffers in bytes, equal to those of Linux.
const (
	inputSize  = 4096 // size of the input buffer; one byte is reserved for the end of a line
	typedSize  = 8192 // size of the buffer for typed bytes that wait for room in the input buffer
	outputSize = 8192 + inputSize
	echoSize   = 4096 // size of the queue of echoes that wait for room in the output
	echoBatch  = 256  // number of echoes that wait while more input is processed

	// kept is the number of bytes of output that a flush keeps: Linux has already moved these to the master.
	kept = inputSize - 1
)

// disabled is the value of a special character that is switched off (_POSIX_VDISABLE). In the input buffer, this value marks
// the position of VEOF.
const disabled = 0

// Line is the state of a terminal.
type Line struct {
	settings linux.Termios
	size     linux.Winsize

	typed []byte
	input []byte
	ends  []bool // ends[i] means that input[i] ends a line
	lines int    // number of bytes of input in complete lines; not used without ICANON

	literal bool // the next character is literal (VLNEXT)
	erasing bool // an erasure shown by ECHOPRT is in progress, which a slash must end

	output []byte
	passed int // number of bytes of output from before the current call of Type, which a signal no longer discards
	echoes []echo
	column int // column of the cursor
	edge   int // column at which the edited line begins

	stopped bool // output is stopped by VSTOP or TCOOFF
	held    bool // output was stopped by TCOOFF, so the key VSTART does not restart it

	packet  bool  // packet mode (TIOCPKT)
	status  uint8 // flags TIOCPKT_* that the master has not read, in packet mode
	signals []int
}

// New returns a terminal with the settings of a new pseudo-terminal.
func New() *Line {
	const speed = 38400
	l := &Line{settings: linux.Termios{
		Input: linux.ICRNL | linux.IXON, Output: linux.OPOST | linux.ONLCR, Control: linux.B38400 | linux.CS8 | linux.CREAD,
		Local: linux.ISIG | linux.ICANON | linux.ECHO | linux.ECHOE | linux.ECHOK | linux.ECHOCTL | linux.ECHOKE | linux.IEXTEN,
		Chars: [linux.NCCS]uint8{
			linux.VINTR: control('C'), linux.VQUIT: control('\\'), linux.VERASE: del, linux.VKILL: control('U'),
			linux.VEOF: control('D'), linux.VMIN: 1, linux.VSTART: control('Q'), linux.VSTOP: control('S'),
			linux.VSUSP: control('Z'), linux.VREPRINT: control('R'), linux.VDISCARD: control('O'),
			linux.VWERASE: control('W'), linux.VLNEXT: control('V'),
		},
		InSpeed: speed, OutSpeed: speed,
	}}
	return l
}

// control returns the character that a letter produces together with the control key.
func control(letter byte) byte { return letter ^ 0x40 }

const del = 0x7f

// Settings returns the settings.
func (l *Line) Settings() linux.Termios { return l.settings }

// Signals returns the signals that keys have caused since the last call, for the foreground process group.
func (l *Line) Signals() []int {
	s := l.signals
	l.signals = nil
	return s
}

// in, out and local report whether all of the given flags are set in the input, output or local flags.
func (l *Line) in(flags uint32) bool    { return l.settings.Input&flags == flags }
func (l *Line) out(flags uint32) bool   { return l.settings.Output&flags == flags }
func (l *Line) local(flags uint32) bool { return l.settings.Local&flags == flags }

// is reports whether c is the special character at the given index of c_cc. A special
// character that is switched off is never equal.
func (l *Line) is(c byte, index int) bool { return c != disabled && c == l.settings.Chars[index] }

// canonical reports whether input is edited as lines.
func (l *Line) canonical() bool { return l.local(linux.ICANON) }

// Character classes of ISO 8859-1, as in Linux.

// isControl reports whether a character is shown as ^X.
func isControl(c byte) bool { return c < ' ' || c == del }

// isWord reports whether a character belongs to a word (VWERASE).
func isWord(c byte) bool {
	const times, divided = 0xd7, 0xf7 // multiplication and division sign, which are between the letters
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
		return true
	}
	return c >= 0xc0 && c != times && c != divided
}

// continues reports whether a byte continues a character of UTF-8.
func (l *Line) continues(c byte) bool { return l.in(linux.IUTF8) && c&0xc0 == 0x80 }
