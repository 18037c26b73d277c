package main

import (
	"bytes"
	"fmt"
	"syscall"
	"time"
)

// pipe sends more bytes through a pipe of the kernel than the pipe holds, so reader and writer wait for each other.
// Afterwards it creates pipes until the kernel has no more.
func pipe() {
	sent := bytes.Repeat([]byte("through a pipe "), 1000)
	var p [2]int
	must(syscall.Pipe2(p[:], syscall.O_CLOEXEC))
	go func() {
		time.Sleep(time.Millisecond) // the reader waits first
		for rest := sent; len(rest) > 0; {
			n, err := again(syscall.Write, p[1], rest)
			must(err)
			rest = rest[n:]
		}
		must(syscall.Close(p[1]))
	}()
	var got []byte
	for b := make([]byte, 700); ; {
		n, err := again(syscall.Read, p[0], b)
		must(err)
		if n == 0 {
			break
		}
		got = append(got, b[:n]...)
	}
	must(syscall.Close(p[0]))
	fmt.Println(bytes.Equal(got, sent), syscall.Close(p[0]), nonblocking(), exhaustPipes())
}

// again repeats a call until it is not interrupted by a signal (EINTR).
func again(call func(int, []byte) (int, error), fd int, b []byte) (n int, err error) {
	for err = syscall.EINTR; err == syscall.EINTR; {
		n, err = call(fd, b)
	}
	return n, err
}

// nonblocking returns the errors of reading from an empty and writing to a full non-blocking pipe.
func nonblocking() []error {
	var p [2]int
	must(syscall.Pipe2(p[:], 0))
	for _, fd := range p {
		must(syscall.SetNonblock(fd, true))
	}
	_, empty := syscall.Read(p[0], make([]byte, 1))
	_, wrong := syscall.Read(p[1], make([]byte, 1))
	n, err := syscall.Write(p[1], make([]byte, 1<<16))
	must(err)
	_, full := syscall.Write(p[1], make([]byte, 1<<16-n))
	must(syscall.Close(p[0]))
	_, broken := syscall.Write(p[1], make([]byte, 1))
	must(syscall.Close(p[1]))
	return []error{empty, wrong, full, broken}
}

// exhaustPipes returns the number of pipes that can be created.
func exhaustPipes() (count int) {
	for ; ; count++ {
		var p [2]int
		if err := syscall.Pipe2(p[:], 0); err == syscall.EMFILE {
			return count
		} else if err != nil {
			panic(err)
		}
		defer syscall.Close(p[0])
		defer syscall.Close(p[1])
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
