package linux

// Requests of terminals, and the bits of their settings (ioctl_tty(2), termios(3)). They are here because package
// syscall has only some of the names.
//
// headers: asm/termbits.h asm/ioctls.h
const (
	TCFLSH         = 0x540b
	TCSBRK         = 0x5409
	TCSBRKP        = 0x5425
	TCXONC         = 0x540a
	TIOCCBRK       = 0x5428
	TIOCEXCL       = 0x540c
	TIOCGDEV       = 0x80045432
	TIOCGLCKTRMIOS = 0x5456
	TIOCSLCKTRMIOS = 0x5457
	TIOCGETD       = 0x5424
	TIOCGEXCL      = 0x80045440
	TIOCGPKT       = 0x80045438
	TIOCGPTLCK     = 0x80045439
	TIOCGPTN       = 0x80045430
	TIOCGPTPEER    = 0x5441
	TIOCGSID       = 0x5429
	TIOCNOTTY      = 0x5422
	TIOCNXCL       = 0x540d
	TIOCPKT        = 0x5420
	TIOCSBRK       = 0x5427
	TIOCSCTTY      = 0x540e
	TIOCSETD       = 0x5423
	TIOCSIG        = 0x40045436
	TIOCSPTLCK     = 0x40045431
	TIOCVHANGUP    = 0x5437

	TCIFLUSH  = 0
	TCOFLUSH  = 1
	TCIOFLUSH = 2
	TCOOFF    = 0
	TCOON     = 1
	TCIOFF    = 2
	TCION     = 3

	TIOCPKT_DATA       = 0
	TIOCPKT_FLUSHREAD  = 1
	TIOCPKT_FLUSHWRITE = 2
	TIOCPKT_STOP       = 4
	TIOCPKT_START      = 8
	TIOCPKT_NOSTOP     = 16
	TIOCPKT_DOSTOP     = 32
	TIOCPKT_IOCTL      = 64

	VINTR    = 0
	VQUIT    = 1
	VERASE   = 2
	VKILL    = 3
	VEOF     = 4
	VTIME    = 5
	VMIN     = 6
	VSTART   = 8
	VSTOP    = 9
	VSUSP    = 10
	VEOL     = 11
	VREPRINT = 12
	VDISCARD = 13
	VWERASE  = 14
	VLNEXT   = 15
	VEOL2    = 16

	IGNBRK = 0x1
	BRKINT = 0x2
	PARMRK = 0x8
	ISTRIP = 0x20
	INLCR  = 0x40
	IGNCR  = 0x80
	ICRNL  = 0x100
	IUCLC  = 0x200
	IXON   = 0x400
	IXANY  = 0x800
	IXOFF  = 0x1000
	IUTF8  = 0x4000

	OPOST  = 0x1
	OLCUC  = 0x2
	ONLCR  = 0x4
	OCRNL  = 0x8
	ONOCR  = 0x10
	ONLRET = 0x20
	TABDLY = 0x1800
	XTABS  = 0x1800

	B38400 = 0xf
	CSIZE  = 0x30
	CS8    = 0x30
	CREAD  = 0x80
	PARENB = 0x100

	ISIG    = 0x1
	ICANON  = 0x2
	ECHO    = 0x8
	ECHOE   = 0x10
	ECHOK   = 0x20
	ECHONL  = 0x40
	NOFLSH  = 0x80
	TOSTOP  = 0x100
	ECHOCTL = 0x200
	ECHOPRT = 0x400
	ECHOKE  = 0x800
	IEXTEN  = 0x8000
	EXTPROC = 0x10000
)

// NCCS is the number of special characters in the kernel's struct termios. The C library's has more.
const NCCS = 19

// Termios is the kernel's struct termios2: the settings of a terminal. The older struct termios has the same fields
// except the speeds.
type Termios struct {
	Input, Output, Control, Local uint32 // c_iflag to c_lflag
	Discipline                    uint8
	Chars                         [NCCS]uint8 // special characters (c_cc), by index: VINTR and others
	InSpeed, OutSpeed             uint32      // in bits per second
}

const termiosChars = 17 // offset of c_cc

// ParseTermios decodes a struct termios, or a struct termios2 if b is that long.
func ParseTermios(b []byte) Termios {
	_ = b[SizeofTermios-1]
	t := Termios{Input: le.Uint32(b), Output: le.Uint32(b[4:]), Control: le.Uint32(b[8:]), Local: le.Uint32(b[12:]), Discipline: b[16]}
	copy(t.Chars[:], b[termiosChars:])
	if len(b) >= SizeofTermios2 {
		t.InSpeed, t.OutSpeed = le.Uint32(b[SizeofTermios:]), le.Uint32(b[SizeofTermios+4:])
	}
	return t
}

// Put encodes t as a struct termios into the first SizeofTermios bytes of b, or as a struct termios2 if b is that long.
func (t Termios) Put(b []byte) {
	_ = b[SizeofTermios-1]
	le.PutUint32(b, t.Input)
	le.PutUint32(b[4:], t.Output)
	le.PutUint32(b[8:], t.Control)
	le.PutUint32(b[12:], t.Local)
	b[16] = t.Discipline
	copy(b[termiosChars:SizeofTermios], t.Chars[:])
	if len(b) >= SizeofTermios2 {
		le.PutUint32(b[SizeofTermios:], t.InSpeed)
		le.PutUint32(b[SizeofTermios+4:], t.OutSpeed)
	}
}

const termioChars = 8 // number of special characters in a struct termio

// SetTermio changes the fields that a struct termio has: the lower halves of the flags, and the first special characters.
func (t *Termios) SetTermio(b []byte) {
	for i, f := range [...]*uint32{&t.Input, &t.Output, &t.Control, &t.Local} {
		*f = *f&^0xffff | uint32(le.Uint16(b[2*i:]))
	}
	t.Discipline = b[8]
	copy(t.Chars[:termioChars], b[9:])
}

// PutTermio encodes t as a struct termio into the first SizeofTermio bytes of b.
func (t Termios) PutTermio(b []byte) {
	for i, f := range [...]uint32{t.Input, t.Output, t.Control, t.Local} {
		le.PutUint16(b[2*i:], uint16(f))
	}
	b[8], b[9+termioChars] = t.Discipline, 0
	copy(b[9:], t.Chars[:termioChars])
}

// Locked returns t with the bits and characters of old whose bits are set in mask (TIOCSLCKTRMIOS).
func (t Termios) Locked(old, mask Termios) Termios {
	for _, f := range [...]struct {
		now       *uint32
		old, mask uint32
	}{
		{&t.Input, old.Input, mask.Input}, {&t.Output, old.Output, mask.Output},
		{&t.Control, old.Control, mask.Control}, {&t.Local, old.Local, mask.Local},
	} {
		*f.now = *f.now&^f.mask | f.old&f.mask
	}
	if mask.Discipline != 0 {
		t.Discipline = old.Discipline
	}
	for i := range t.Chars {
		if mask.Chars[i] != 0 {
			t.Chars[i] = old.Chars[i]
		}
	}
	return t
}

// Winsize is struct winsize: the size of a terminal, in characters and in pixels.
type Winsize struct{ Rows, Columns, X, Y uint16 }

// ParseWinsize decodes a struct winsize.
func ParseWinsize(b []byte) Winsize {
	return Winsize{le.Uint16(b), le.Uint16(b[2:]), le.Uint16(b[4:]), le.Uint16(b[6:])}
}

// Put encodes w into the first SizeofWinsize bytes of b.
func (w Winsize) Put(b []byte) {
	le.PutUint16(b, w.Rows)
	le.PutUint16(b[2:], w.Columns)
	le.PutUint16(b[4:], w.X)
	le.PutUint16(b[6:], w.Y)
}
