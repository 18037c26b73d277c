package unikernel

import (
	"io"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"loam/unikernel/channel"
)

// sharesTerminal reports whether the program may read this process's terminal. This process group must be
// in the terminal's foreground. The terminal must be standard input, or must be standard output or error
// while standard input is a pipe or a file, as in `ls | fzf`. Another device as standard input, such as
// /dev/null for a background program, means that no terminal is wanted.
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

// inForeground reports whether a descriptor is this process's controlling terminal with this process group
// in its foreground.
func inForeground(fd uintptr) bool {
	var group int32
	// Safety: TIOCGPGRP writes one pid_t (tcgetpgrp(3)); it fails on anything
	// but the controlling terminal.
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGPGRP, uintptr(unsafe.Pointer(&group)))
	return errno == 0 && int(group) == syscall.Getpgrp()
}

// Terminal requests that package syscall lacks (ioctl_tty(2)).
const (
	tcgets2  = 0x802c542a
	tcsets2  = 0x402c542b
	tcsetsf2 = 0x402c542d
)

// Sizes of the kernel's struct termios, struct termios2 and struct winsize, in bytes.
const (
	termiosLen  = 36
	termios2Len = 44
	winsizeLen  = 8
)

// terminals serves terminal requests of a program in a virtual machine on this process's standard streams,
// and restores the terminals' settings at the end.
type terminals struct {
	mu     sync.Mutex
	before map[int][]byte // original struct termios of each changed descriptor; guarded by mu
}

// control implements ioctl(2) of the guest on a terminal of the host. It allows only requests about the terminal's
// settings and size. Others return ENOTTY.
func (t *terminals) control(fd, request int, arg []byte) syscall.Errno {
	if request == channel.Suspend {
		t.suspend()
		return 0
	}
	size, sets := 0, false
	switch {
	case request == syscall.TCGETS:
		size = termiosLen
	case request >= syscall.TCSETS && request <= syscall.TCSETS+2: // the request is TCSETS, TCSETSW or TCSETSF
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

// remember saves a terminal's settings before their first change.
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

// restore restores the settings of all changed terminals.
func (t *terminals) restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for fd, b := range t.before {
		terminalControl(fd, syscall.TCSETS, b)
	}
}

// suspend stops this process as a job. It restores the terminals' original settings before, and the program's settings
// when the process continues.
func (t *terminals) suspend() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := map[int][]byte{}
	for fd, b := range t.before {
		now[fd] = make([]byte, termiosLen)
		terminalControl(fd, syscall.TCGETS, now[fd])
		terminalControl(fd, syscall.TCSETS+1, b) // TCSETSW changes the settings after pending output has been written
	}
	stopAsJob()
	for fd, b := range now {
		terminalControl(fd, syscall.TCSETS, b)
	}
}

// terminalControl makes an ioctl on a terminal. arg must be as large as the request needs.
func terminalControl(fd, request int, arg []byte) syscall.Errno {
	// Safety: control has checked that arg is as long as the request needs.
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(unsafe.Pointer(unsafe.SliceData(arg))))
	return errno
}

// keyboard reads this process's terminal. It opens the terminal on first use.
type keyboard struct {
	opening sync.Once
	file    *os.File
	err     error
}

// terminalOf returns a reader of this process's terminal, or nil if none of the program's standard streams
// is a terminal: a program with all streams redirected has no terminal.
func terminalOf(streams ...*os.File) io.Reader {
	for _, f := range streams {
		if terminalControl(int(f.Fd()), syscall.TCGETS, make([]byte, termiosLen)) == 0 {
			return new(keyboard)
		}
	}
	return nil
}

// Read implements io.Reader. Errors: those of open(2), such as ENXIO without a terminal.
func (k *keyboard) Read(b []byte) (int, error) {
	k.opening.Do(func() { k.file, k.err = os.OpenFile("/dev/tty", os.O_RDWR, 0) })
	if k.err != nil {
		return 0, k.err
	}
	return k.file.Read(b)
}

// sameFile reports whether two open files are the same file.
func sameFile(a, b *os.File) (bool, error) {
	sa, err := a.Stat()
	if err != nil {
		return false, err
	}
	sb, err := b.Stat()
	return err == nil && os.SameFile(sa, sb), err
}
