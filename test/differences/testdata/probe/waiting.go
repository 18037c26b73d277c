package main

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

func ptrTo(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

// epoll returns an epoll set that contains a descriptor.
func epoll(fd int, events uint32) (int, error) {
	set, err := syscall.EpollCreate1(0)
	if err != nil {
		return set, err
	}
	return set, syscall.EpollCtl(set, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: events, Fd: int32(fd)})
}

// ready returns the events of an epoll set, without waiting.
func ready(set int) string {
	var e [4]syscall.EpollEvent
	n, err := syscall.EpollWait(set, e[:], 0)
	if err != nil {
		return word(err)
	}
	return fmt.Sprintf("%d %#x", n, e[0].Events)
}

var waiting = []probe{
	{"epoll of a pipe, by level", func() string {
		r, _ := filled("x")
		s, err := epoll(int(r.Fd()), syscall.EPOLLIN)
		return joined(word(err), ready(s), ready(s))
	}},
	{"epoll of a pipe, by edge", func() string {
		r, _ := filled("x")
		s, err := epoll(int(r.Fd()), syscall.EPOLLIN|1<<31)
		return joined(word(err), ready(s), ready(s))
	}},
	{"epoll EPOLLONESHOT", func() string {
		r, _ := filled("x")
		s, err := epoll(int(r.Fd()), syscall.EPOLLIN|1<<30)
		return joined(word(err), ready(s), ready(s))
	}},
	{"epoll EPOLLEXCLUSIVE", func() string {
		r, _ := filled("x")
		s, err := epoll(int(r.Fd()), syscall.EPOLLIN|1<<28)
		return joined(word(err), ready(s))
	}},
	{"epoll of a file", func() string { _, err := epoll(int(file("e", nil).Fd()), syscall.EPOLLIN); return word(err) }},
	{"epoll of itself", func() string {
		s, _ := syscall.EpollCreate1(0)
		return word(syscall.EpollCtl(s, syscall.EPOLL_CTL_ADD, s, &syscall.EpollEvent{Events: 1}))
	}},
	{"epoll of an epoll set", func() string {
		r, _ := filled("x")
		s, _ := epoll(int(r.Fd()), syscall.EPOLLIN)
		t, err := epoll(s, syscall.EPOLLIN)
		return joined(word(err), ready(t))
	}},
	{"epoll_pwait2", func() string {
		s, _ := syscall.EpollCreate1(0)
		var e [1]syscall.EpollEvent
		t := syscall.Timespec{Nsec: 1000}
		return count(441, uintptr(s), at(&e), 1, at(&t), 0, 8)
	}},
	{"poll of a closed descriptor", func() string {
		p := [2]uint32{999, 1}
		return joined(count(syscall.SYS_POLL, at(&p), 1, 0), fmt.Sprintf("%#x", p[1]>>16))
	}},
	{"poll of a file", func() string {
		p := [2]uint32{uint32(file("e", nil).Fd()), 5}
		return joined(count(syscall.SYS_POLL, at(&p), 1, 0), fmt.Sprintf("%#x", p[1]>>16))
	}},
	{"ppoll returns the rest of its time", func() string {
		r, _ := filled("x")
		p := [2]uint32{uint32(r.Fd()), 1}
		t := syscall.Timespec{Sec: 100}
		s := count(syscall.SYS_PPOLL, at(&p), 1, at(&t), 0, 0)
		return joined(s, yes(t.Sec < 100))
	}},
	{"select returns the rest of its time", func() string {
		r, _ := filled("x")
		var set syscall.FdSet
		set.Bits[r.Fd()/64] |= 1 << (r.Fd() % 64)
		t := syscall.Timeval{Sec: 100}
		n, err := syscall.Select(int(r.Fd())+1, &set, nil, nil, &t)
		return joined(word(err), fmt.Sprint(n), yes(t.Sec < 100))
	}},
	{"eventfd as a semaphore", func() string {
		fd, errno := call(290, 2, 1)
		if errno != 0 {
			return word(errno)
		}
		b := make([]byte, 8)
		syscall.Read(int(fd), b)
		first := b[0]
		syscall.Read(int(fd), b)
		return fmt.Sprint(first, b[0])
	}},
	{"eventfd that would overflow", func() string {
		fd, _ := call(290, 0, syscall.O_NONBLOCK)
		b := []byte{0xfe, 255, 255, 255, 255, 255, 255, 255}
		_, err := syscall.Write(int(fd), b)
		_, err2 := syscall.Write(int(fd), b)
		return joined(word(err), word(err2))
	}},
	{"/dev/ptmx", func() string { _, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0); return word(err) }},
}
