package terminal

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"testing"
	"unsafe"

	"loam/abi/linux"
)

// host is a pseudo-terminal of the host's kernel. Both ends are non-blocking.
type host struct{ master, slave int }

func newHost(t *testing.T) *host {
	t.Helper()
	const flags = linux.O_RDWR | linux.O_NOCTTY | linux.O_NONBLOCK | linux.O_CLOEXEC
	master, err := syscall.Open("/dev/ptmx", flags, 0)
	if err != nil {
		t.Skipf("this system has no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { syscall.Close(master) })
	h := &host{master: master}
	n := make([]byte, 4)
	h.control(t, master, linux.TIOCSPTLCK, make([]byte, 4))
	h.control(t, master, linux.TIOCGPTN, n)
	if h.slave, err = syscall.Open(fmt.Sprint("/dev/pts/", binary.NativeEndian.Uint32(n)), flags, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(h.slave) })
	return h
}

// control makes an ioctl whose argument is memory.
func (h *host) control(t *testing.T, fd, request int, arg []byte) {
	t.Helper()
	// Safety: arg is as large as the argument of the request.
	if _, _, errno := syscall.Syscall(linux.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(unsafe.Pointer(unsafe.SliceData(arg)))); errno != 0 {
		t.Fatalf("ioctl %#x: %v", request, errno)
	}
}

// value makes an ioctl whose argument is a number.
func (h *host) value(t *testing.T, fd, request, arg int) {
	t.Helper()
	if _, _, errno := syscall.Syscall(linux.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg)); errno != 0 {
		t.Fatalf("ioctl %#x: %v", request, errno)
	}
}

// ready polls the slave for input, for at most the given milliseconds. If a poll finds no input, Linux first processes the
// characters that were typed, and then looks again.
func (h *host) ready(events int16, milliseconds int) bool {
	p := struct {
		fd              int32
		events, revents int16
	}{int32(h.slave), events, 0}
	// Safety: p is a struct pollfd (poll(2)).
	n, _, _ := syscall.Syscall(linux.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(milliseconds))
	return n == 1 && p.revents&linux.POLLIN != 0
}
