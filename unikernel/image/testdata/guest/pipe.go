package main

import (
	"bytes"
	"fmt"
	"syscall"
	"time"
)

// pipe sends more through a pipe of the kernel's than it holds: both ends wait for one
// another. Then it has used up all that there are.
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

// again makes a call until nothing interrupts it.
func again(call func(int, []byte) (int, error), fd int, b []byte) (n int, err error) {
	for err = syscall.EINTR; err == syscall.EINTR; {
		n, err = call(fd, b)
	}
	return n, err
}

// nonblocking is what the ends of a pipe say that are not to wait.
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

// exhaustPipes is how many pipes there are.
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
