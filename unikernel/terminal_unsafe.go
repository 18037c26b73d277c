package unikernel

import (
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// sharesTerminal reports whether the program may read the terminal of this process: this
// process group is in its foreground, and the terminal is standard input, or what is
// shown on while standard input comes from elsewhere, as in `ls | fzf`. Standard input
// that is another device, such as /dev/null of who runs in the background, asks for no terminal.
func sharesTerminal() bool {
	if inForeground(0) {
		return true
	}
	in, err := os.Stdin.Stat()
	if err != nil || in.Mode()&os.ModeCharDevice != 0 {
		return false
	}
	return inForeground(1) || inForeground(2)
}

// inForeground reports whether a descriptor is the terminal of this process and this
// process group is in its foreground.
func inForeground(fd uintptr) bool {
	var group int32
	// Safety: TIOCGPGRP writes one pid_t (tcgetpgrp(3)); it fails on anything
	// but the controlling terminal.
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return errno == 0 && int(group) == syscall.Getpgrp()
}

// Requests of a terminal that package syscall lacks (ioctl_tty(2)).
const (
	tcgets2  = 0x802c542a
	tcsets2  = 0x402c542b
	tcsetsf2 = 0x402c542d
)

// termiosLen is that of the kernel's struct termios, termios2Len that of struct
// termios2, winsizeLen that of struct winsize.
const (
	termiosLen  = 36
	termios2Len = 44
	winsizeLen  = 8
)

// terminals serves requests of a program in a virtual machine about terminals that
// are our standard streams, and puts them back as they were.
type terminals struct {
	mu     sync.Mutex
	before map[int][]byte // struct termios, of those that were changed
}

// control is an ioctl(2). It serves what concerns the terminal alone: how it behaves
// and how large it is.
func (t *terminals) control(fd, request int, arg []byte) syscall.Errno {
	size, sets := 0, false
	switch {
	case request == syscall.TCGETS:
		size = termiosLen
	case request >= syscall.TCSETS && request <= syscall.TCSETS+2: // TCSETSW, TCSETSF
		size, sets = termiosLen, true
	case request == tcgets2:
		size = termios2Len
	case request >= tcsets2 && request <= tcsetsf2:
		size, sets = termios2Len, true
	case request == syscall.TIOCGWINSZ:
		size = winsizeLen
	}
	if size == 0 || len(arg) < size || fd < 0 || fd > 2 {
		return syscall.ENOTTY
	}
	if sets {
		t.remember(fd)
	}
	return terminalControl(fd, request, arg)
}

// remember notes how a terminal is before it is changed for the first time.
func (t *terminals) remember(fd int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := make([]byte, termiosLen)
	if t.before[fd] == nil && terminalControl(fd, syscall.TCGETS, b) == 0 {
		if t.before == nil {
			t.before = map[int][]byte{}
		}
		t.before[fd] = b
	}
}

// restore puts all terminals back.
func (t *terminals) restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for fd, b := range t.before {
		terminalControl(fd, syscall.TCSETS, b)
	}
}

func terminalControl(fd, request int, arg []byte) syscall.Errno {
	// Safety: control has checked that arg is as long as what the request reads or
	// writes.
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(unsafe.Pointer(unsafe.SliceData(arg))))
	return errno
}

// keyboard is the terminal of this process, which is opened when it is first read.
type keyboard struct {
	opening sync.Once
	file    *os.File
	err     error
}

// Read implements io.Reader. Errors: those of open(2), ENXIO where there is no terminal.
func (k *keyboard) Read(b []byte) (int, error) {
	k.opening.Do(func() { k.file, k.err = os.OpenFile("/dev/tty", os.O_RDWR, 0) })
	if k.err != nil {
		return 0, k.err
	}
	return k.file.Read(b)
}

// sameFile reports whether two files are one.
func sameFile(a, b *os.File) (bool, error) {
	sa, err := a.Stat()
	if err != nil {
		return false, err
	}
	sb, err := b.Stat()
	return err == nil && os.SameFile(sa, sb), err
}
