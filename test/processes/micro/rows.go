package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	page    = 4096
	private = syscall.MAP_PRIVATE | syscall.MAP_ANON
	shared  = syscall.MAP_SHARED | syscall.MAP_ANON
	rw      = syscall.PROT_READ | syscall.PROT_WRITE
)

// rows are all rows, in the order of the table.
var rows = []row{
	{"getppid, a call that does nothing", plain(func() error { _, err := raw(syscall.SYS_GETPPID, 0, 0, 0); return err })},
	{"16 stores and 16 loads of AVX registers, no call", vectorMoves},
	{"clock_gettime by the vDSO", plain(func() error { now.Store(time.Now().UnixNano()); return nil })},
	{"read of 1 byte from /dev/zero", onFile("/dev/zero", os.O_RDONLY, func(fd int) error { _, err := read(fd, 1); return err })},
	{"write of 1 byte to /dev/null", onFile("/dev/null", os.O_WRONLY, func(fd int) error { _, err := write(fd, 1); return err })},
	{"read of 4 KiB from a file", fileRead(page)},
	{"read of 64 KiB from a file", fileRead(16 * page)},
	{"open and close of a file", openClose},
	{"stat of a file", statFile},
	{"dup and close", onFile("/dev/null", os.O_RDONLY, dupClose)},
	{"signal to itself, with a handler", plain(func() error { return kill(os.Getpid(), int(syscall.SIGURG)) })},
	{"mmap and munmap of 64 KiB", plain(mapUnmap)},
	{"mmap of 64 KiB, stores to 16 pages, munmap", plain(mapTouchUnmap)},
	{"page fault, anonymous memory", anonymousFaults},
	{"page fault, file in memory", fileFaults},
	{"stores to 2 MiB of new memory, small pages", newBlocks(syscall.MADV_NOHUGEPAGE)},
	{"stores to 2 MiB of new memory, a huge page", newBlocks(syscall.MADV_HUGEPAGE)},
	{"mprotect of a page, twice", protectPages},
	{"round trip of 1 byte by pipes", pipePingPong},
	{"round trip by futexes", futexPingPong},
	{"round trip of 1 byte by Unix sockets", unixPingPong},
	{"round trip of 1 byte by TCP on loopback", tcpPingPong},
	{"start and end of a thread", threads},
	{"fork, exit and wait", plain(forkWait)},
	{"fork, execve, exit and wait", forkExec},
}

var now atomic.Int64 // stores results, so that the compiler does not remove the calls

func nothing() {}

// plain returns the prepare function of a row whose calls need no preparation.
func plain(f func() error) func() (func(int) error, func(), error) {
	return func() (func(int) error, func(), error) { return repeat(f), nothing, nil }
}

func repeat(f func() error) func(int) error {
	return func(n int) error {
		for range n {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
}

func onFile(name string, flags int, f func(fd int) error) func() (func(int) error, func(), error) {
	return func() (func(int) error, func(), error) {
		fd, err := syscall.Open(name, flags, 0)
		return repeat(func() error { return f(fd) }), func() { syscall.Close(fd) }, err
	}
}

// vectorMoves measures the moves of vector registers that Loam executes at each system call. It calls no kernel: it shows how long
// the moves take on this machine.
func vectorMoves() (func(int) error, func(), error) {
	if !hasAVX() {
		return nil, nil, errors.New("the processor has no AVX")
	}
	memory := new([512]byte)
	return func(n int) error { moves(n, memory); return nil }, nothing, nil
}

// scratch makes a file with content, and returns its name.
func scratch(size int) (string, error) {
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(*dir, "micro")
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, err = f.Write(make([]byte, size))
	return f.Name(), err
}

func fileRead(size int) func() (func(int) error, func(), error) {
	return func() (func(int) error, func(), error) {
		name, err := scratch(size)
		if err != nil {
			return nil, nil, err
		}
		fd, err := syscall.Open(name, os.O_RDONLY, 0)
		return repeat(func() error {
			_, err := raw6(syscall.SYS_LSEEK, uintptr(fd), 0, 0, 0, 0, 0)
			if n, _ := read(fd, size); n != size {
				return fmt.Errorf("read %d bytes", n)
			}
			return err
		}), func() { syscall.Close(fd); os.Remove(name) }, err
	}
}

func openClose() (func(int) error, func(), error) {
	name, err := scratch(1)
	path := cString(name)
	return repeat(func() error {
		fd, err := openFile(path, os.O_RDONLY)
		closeFD(fd)
		return err
	}), func() { os.Remove(name) }, err
}

// dupClose allocates and frees a descriptor of an open file.
func dupClose(fd int) error {
	other, err := raw(syscall.SYS_DUP, uintptr(fd), 0, 0)
	closeFD(int(other))
	return err
}

func statFile() (func(int) error, func(), error) {
	name, err := scratch(1)
	path := cString(name)
	st := new(syscall.Stat_t)
	return repeat(func() error { return stat(path, st) }), func() { os.Remove(name) }, err
}

func mapUnmap() error {
	addr, err := mmap(16*page, rw, private, -1)
	if err != nil {
		return err
	}
	return munmap(addr, 16*page)
}

func mapTouchUnmap() error {
	const pages = 16
	addr, err := mmap(pages*page, rw, private, -1)
	if err != nil {
		return err
	}
	for i := range uintptr(pages) {
		*at(addr + i*page) = 1
	}
	return munmap(addr, pages*page)
}

// anonymousFaults measures the first store to a page. The time includes mapping and unmapping 4 MiB once in 1,024
// faults.
func anonymousFaults() (func(int) error, func(), error) {
	const pages = 1024
	return func(n int) error {
		for done := 0; done < n; done += pages {
			addr, err := mmap(pages*page, rw, private, -1)
			if err != nil {
				return err
			}
			// Both kernels must use pages of 4 KiB here, since the fault of such a page is measured.
			raw(syscall.SYS_MADVISE, addr, pages*page, syscall.MADV_NOHUGEPAGE)
			for i := range uintptr(min(pages, n-done)) {
				*at(addr + i*page) = 1
			}
			if err := munmap(addr, pages*page); err != nil {
				return err
			}
		}
		return nil
	}, nothing, nil
}

// newBlocks returns the prepare function of a row that maps memory with an advice, stores to each page of 2 MiB, and unmaps it.
func newBlocks(advice uintptr) func() (func(int) error, func(), error) {
	const size = 2 << 20
	return func() (func(int) error, func(), error) {
		return repeat(func() error {
			addr, err := mmap(2*size, rw, private, -1)
			if err != nil {
				return err
			}
			start := (addr + size - 1) &^ (size - 1)
			if _, err := raw(syscall.SYS_MADVISE, start, size, advice); err != nil {
				return err
			}
			for i := uintptr(0); i < size; i += page {
				*at(start + i) = 1
			}
			return munmap(addr, 2*size)
		}), nothing, nil
	}
}

// fileFaults measures the first load from a page of a file that is in memory.
func fileFaults() (func(int) error, func(), error) {
	const pages = 1024
	name, err := scratch(pages * page)
	if err != nil {
		return nil, nil, err
	}
	fd, err := syscall.Open(name, os.O_RDONLY, 0)
	sum := byte(0)
	return func(n int) error {
		for done := 0; done < n; done += pages {
			addr, err := mmap(pages*page, syscall.PROT_READ, syscall.MAP_SHARED, fd)
			if err != nil {
				return err
			}
			for i := range uintptr(min(pages, n-done)) {
				sum += *at(addr + i*page)
			}
			if err := munmap(addr, pages*page); err != nil {
				return err
			}
		}
		return nil
	}, func() { syscall.Close(fd); os.Remove(name) }, err
}

func protectPages() (func(int) error, func(), error) {
	addr, err := mmap(page, rw, private, -1)
	if err == nil {
		*at(addr) = 1
	}
	return repeat(func() error {
		if err := mprotect(addr, page, syscall.PROT_READ); err != nil {
			return err
		}
		return mprotect(addr, page, rw)
	}), func() { munmap(addr, page) }, err
}

// pingPong forks a child that answers each byte that it reads from the pipe down with a
// byte to the pipe up, until the pipe down is closed.
func pingPong(down, up [2]int) (func(int) error, func(), error) {
	pid, err := fork()
	if err != nil {
		return nil, nil, err
	}
	if pid == 0 {
		closeFD(down[1])
		for {
			if n, _ := read(down[0], 1); n != 1 {
				exit(0)
			}
			write(up[1], 1)
		}
	}
	closeFD(down[0])
	if up[1] != down[0] {
		closeFD(up[1])
	}
	return repeat(func() error {
			if _, err := write(down[1], 1); err != nil {
				return err
			}
			if n, err := read(up[0], 1); n != 1 {
				return errors.Join(err, errors.New("the other process does not answer"))
			}
			return nil
		}), func() {
			closeFD(down[1])
			if up[0] != down[1] {
				closeFD(up[0])
			}
			wait(pid)
		}, nil
}

func pipePingPong() (func(int) error, func(), error) {
	var down, up [2]int
	if err := errors.Join(pipe(&down), pipe(&up)); err != nil {
		return nil, nil, err
	}
	return pingPong(down, up)
}

func unixPingPong() (func(int) error, func(), error) {
	p, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	return pingPong([2]int{p[1], p[0]}, [2]int{p[0], p[1]})
}

func tcpPingPong() (func(int) error, func(), error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	near, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	far, err := l.Accept()
	if err != nil {
		return nil, nil, err
	}
	a, err1 := near.(*net.TCPConn).File()
	b, err2 := far.(*net.TCPConn).File()
	near.Close()
	far.Close()
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, err
	}
	for _, f := range []*os.File{a, b} {
		if err := syscall.SetNonblock(int(f.Fd()), false); err != nil {
			return nil, nil, err
		}
	}
	x, y := int(a.Fd()), int(b.Fd())
	runtime.SetFinalizer(a, nil)
	runtime.SetFinalizer(b, nil)
	kept = append(kept, a, b)
	return pingPong([2]int{y, x}, [2]int{x, y})
}

var kept []*os.File // keeps the files in use, so that no finalizer closes them

func futexPingPong() (func(int) error, func(), error) {
	addr, err := mmap(page, rw, shared, -1)
	if err != nil {
		return nil, nil, err
	}
	const end = 1 << 31
	turn := word(addr)
	// hand wakes the other side, and waits until that side wakes this one.
	hand := func(own, other uint32) bool {
		turn.Store(other)
		futex(addr, futexWake, 1)
		for {
			switch v := turn.Load(); v {
			case own:
				return true
			case end:
				return false
			default:
				futex(addr, futexWait, v)
			}
		}
	}
	pid, err := fork()
	if err != nil {
		return nil, nil, err
	}
	if pid == 0 {
		for hand(1, 0) {
		}
		exit(0)
	}
	return repeat(func() error { hand(0, 1); return nil }), func() {
		turn.Store(end)
		futex(addr, futexWake, 1)
		wait(pid)
		munmap(addr, page)
	}, nil
}

func threads() (func(int) error, func(), error) {
	const stack = 4 * page
	addr, err := mmap(stack, rw, private, -1)
	if err != nil {
		return nil, nil, err
	}
	tid := word(addr)
	return repeat(func() error {
		tid.Store(1)
		if n := thread(addr+stack, addr); int(n) < 0 {
			return fmt.Errorf("clone: %v", syscall.Errno(-n))
		}
		for tid.Load() != 0 {
			futex(addr, futexWait, 1)
		}
		return nil
	}), func() { munmap(addr, stack) }, nil
}

func forkWait() error {
	pid, err := fork()
	if err != nil {
		return err
	}
	if pid == 0 {
		exit(0)
	}
	return wait(pid)
}

// forkExec starts a small program, which the environment variable MICRO_EXEC names (by default this program itself).
func forkExec() (func(int) error, func(), error) {
	name := os.Getenv("MICRO_EXEC")
	if name == "" {
		name = os.Args[0]
	}
	path := cString(name)
	args := []*byte{path, cString("-mode=exit"), nil}
	env := []*byte{nil}
	return repeat(func() error {
		pid, err := fork()
		if err != nil {
			return err
		}
		if pid == 0 {
			execve(path, &args[0], &env[0])
			exit(1)
		}
		return wait(pid)
	}), nothing, nil
}
