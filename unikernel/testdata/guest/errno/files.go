package main

import (
	"fmt"
	"os"
	"syscall"
)

// files holds a descriptor of each kind. None of them blocks.
type files struct {
	file, dir, null            int
	pipe, unix                 [2]int
	tcp, listener, udp         int
	epoll, event, timer, watch int
}

// open opens all of them.
func open() (f files) {
	f.file = must(syscall.Open("file", syscall.O_RDWR|syscall.O_CREAT, 0o600))
	must(syscall.Write(f.file, []byte("content")))
	f.dir = must(syscall.Open(".", syscall.O_RDONLY|syscall.O_DIRECTORY, 0))
	f.null = must(syscall.Open("/dev/null", syscall.O_RDWR, 0))
	check(syscall.Pipe2(f.pipe[:], syscall.O_NONBLOCK))
	var err error
	f.unix, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	check(err)
	f.tcp = must(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0))
	f.listener = must(syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0))
	check(syscall.Bind(f.listener, &syscall.SockaddrUnix{Name: "listener"}))
	check(syscall.Listen(f.listener, 5))
	f.udp = must(syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_NONBLOCK, 0))
	f.epoll = must(syscall.EpollCreate1(0))
	const eventfd2, timerfdCreate, nonblock = syscall.SYS_EVENTFD2, syscall.SYS_TIMERFD_CREATE, syscall.O_NONBLOCK
	f.event = raw(eventfd2, 0, nonblock)
	f.timer = raw(timerfdCreate, 1, nonblock)
	f.watch = must(syscall.InotifyInit1(syscall.IN_NONBLOCK))
	return f
}

func raw(number, a, b uintptr) int {
	r, _, errno := syscall.Syscall(number, a, b, 0)
	if errno != 0 {
		check(errno)
	}
	return int(r)
}

func must(n int, err error) int {
	check(err)
	return n
}

func check(err error) {
	if err != nil {
		fmt.Println("FAIL", err)
		os.Exit(1)
	}
}
