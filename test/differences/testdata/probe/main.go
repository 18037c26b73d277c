// Command probe makes system calls and uses other services of the kernel, one after the other, and prints a line for
// each: its name, a tab, and the result. On two kernels that behave alike, it prints the same lines.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// probe is a check of the kernel's behaviour. Its result is a line without times, addresses or IDs.
type probe struct {
	name string
	ask  func() string
}

// patience is the time after which a probe counts as hanging.
const patience = time.Minute

func main() {
	dir, err := os.MkdirTemp("", "probe-")
	if err == nil {
		err = os.Chdir(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	all := slices.Concat(memory, files, paths, pipes, clocks, timers, signals, processes, threads, limits, sockets, waiting, proc)
	for _, p := range all {
		if len(os.Args) > 1 && !strings.Contains(p.name, os.Args[1]) {
			continue
		}
		fmt.Printf("%s\t%s\n", p.name, answer(p))
	}
	os.Chdir("/")
	os.RemoveAll(dir)
}

// answer runs a probe and returns its result.
func answer(p probe) string {
	result := make(chan string, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				result <- fmt.Sprint("panic: ", r)
			}
		}()
		result <- p.ask()
	}()
	select {
	case s := <-result:
		return s
	case <-time.After(patience):
		return "hangs"
	}
}

// call makes a system call.
func call(number uintptr, args ...uintptr) (uintptr, syscall.Errno) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	return r, errno
}

// outcome is the result of a call that returns 0 or an errno.
func outcome(number uintptr, args ...uintptr) string {
	_, errno := call(number, args...)
	return word(errno)
}

// count is the result of a call that returns a number or an errno.
func count(number uintptr, args ...uintptr) string {
	n, errno := call(number, args...)
	if errno != 0 {
		return word(errno)
	}
	return fmt.Sprint(n)
}

// word returns the name of an error.
func word(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case !errors.As(err, &errno):
		return err.Error()
	case errno == 0:
		return "ok"
	}
	names := map[syscall.Errno]string{
		syscall.EPERM: "EPERM", syscall.ENOENT: "ENOENT", syscall.ESRCH: "ESRCH", syscall.EINTR: "EINTR", syscall.EIO: "EIO",
		syscall.ENXIO: "ENXIO", syscall.EBADF: "EBADF", syscall.ECHILD: "ECHILD", syscall.EAGAIN: "EAGAIN", syscall.ENOMEM: "ENOMEM",
		syscall.EACCES: "EACCES", syscall.EFAULT: "EFAULT", syscall.EBUSY: "EBUSY", syscall.EEXIST: "EEXIST", syscall.EXDEV: "EXDEV", syscall.EROFS: "EROFS",
		syscall.ENODEV: "ENODEV", syscall.ENOTDIR: "ENOTDIR", syscall.EISDIR: "EISDIR", syscall.EINVAL: "EINVAL", syscall.EMFILE: "EMFILE",
		syscall.ENOTTY: "ENOTTY", syscall.EFBIG: "EFBIG", syscall.ENOSPC: "ENOSPC", syscall.ESPIPE: "ESPIPE", syscall.EPIPE: "EPIPE",
		syscall.ENOSYS: "ENOSYS", syscall.ENOTEMPTY: "ENOTEMPTY", syscall.ELOOP: "ELOOP", syscall.EOPNOTSUPP: "EOPNOTSUPP",
		syscall.ENODATA: "ENODATA", syscall.ETIMEDOUT: "ETIMEDOUT", syscall.ECONNREFUSED: "ECONNREFUSED", syscall.ENAMETOOLONG: "ENAMETOOLONG",
		syscall.EPROTONOSUPPORT: "EPROTONOSUPPORT", syscall.EAFNOSUPPORT: "EAFNOSUPPORT", syscall.ENOPROTOOPT: "ENOPROTOOPT",
		syscall.EADDRINUSE: "EADDRINUSE", syscall.EADDRNOTAVAIL: "EADDRNOTAVAIL", syscall.ENOTCONN: "ENOTCONN", syscall.EISCONN: "EISCONN",
		syscall.ESOCKTNOSUPPORT: "ESOCKTNOSUPPORT", syscall.EDESTADDRREQ: "EDESTADDRREQ", syscall.EMSGSIZE: "EMSGSIZE", syscall.ERANGE: "ERANGE",
		syscall.EDEADLK: "EDEADLK", syscall.ETXTBSY: "ETXTBSY", syscall.EOVERFLOW: "EOVERFLOW", syscall.ENOTSOCK: "ENOTSOCK",
	}
	if s := names[errno]; s != "" {
		return s
	}
	return fmt.Sprint("errno ", int(errno))
}

// at returns the address of a value.
func at[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// text returns the address of a copy of s with a terminating NUL.
func text(s string) uintptr {
	b, _ := syscall.BytePtrFromString(s)
	keep = append(keep, b)
	return uintptr(unsafe.Pointer(b))
}

// keep holds the memory that addresses point to, so that it is not freed.
var keep []any

// buffer returns memory and its address. The memory is on no stack, so it does not move.
func buffer(n int) ([]byte, uintptr) {
	b := make([]byte, n)
	keep = append(keep, b)
	return b, uintptr(unsafe.Pointer(&b[0]))
}

// file makes a file with some content in the working folder and opens it for reading and writing.
func file(name string, content []byte) *os.File {
	must(os.WriteFile(name, content, 0o644))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	must(err)
	return f
}

// fresh returns the path of a file that does not exist, in the working folder.
func fresh(name string) string {
	p, err := filepath.Abs(name)
	must(err)
	must(os.RemoveAll(p))
	return p
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// yes returns "yes" or "no".
func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// joined joins several results.
func joined(answers ...string) string { return strings.Join(answers, ", ") }
