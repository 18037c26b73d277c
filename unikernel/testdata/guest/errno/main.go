// Command errno makes system calls with one wrong argument at a time, and prints the errno of each. Its output is the
// same on Linux and on Loam.
package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// kind is the kind of an argument. It determines the wrong values to try.
type kind int

const (
	number     kind = iota // no wrong values
	descriptor             // wrong: -1, a number that is not open, and descriptors of other kinds
	address                // wrong: NULL, and unmapped addresses
	size                   // wrong: negative, and larger than memory
	count                  // wrong: negative
)

// arg is a valid argument.
type arg struct {
	kind  kind
	value uintptr
}

// call is a system call with valid arguments.
type call struct {
	name   string
	number uintptr
	args   []arg
}

// Addresses where nothing is mapped: one in the lower half, and one that is not canonical.
const (
	nowhere = 0x0dead000
	outside = 1 << 50
)

// room keeps the memory alive that arguments point to.
var room []any

// at returns the address of memory with a copy of value. The memory is never freed.
func at[T any](value T) arg {
	p := new(T)
	*p = value
	room = append(room, p)
	return arg{address, uintptr(unsafe.Pointer(p))}
}

// path returns the address of a string that ends with a NUL.
func path(s string) arg {
	b := append([]byte(s), 0)
	room = append(room, b)
	return arg{address, uintptr(unsafe.Pointer(&b[0]))}
}

// fixed returns an argument that is not varied, such as a timeout: without one the call would not return.
func fixed(a arg) arg { return arg{number, a.value} }

// pointer converts the address of unmapped memory to a pointer, in a way that vet accepts.
func pointer(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

func n(v int) arg  { return arg{number, uintptr(v)} }
func sz(v int) arg { return arg{size, uintptr(v)} }
func cn(v int) arg { return arg{count, uintptr(v)} }
func fd(v int) arg { return arg{descriptor, uintptr(v)} }

func main() {
	dir, err := os.MkdirTemp("", "errno")
	if err == nil {
		err = os.Chdir(dir)
	}
	f := open()
	for _, list := range [][]call{calls(f), fileCalls(f), memoryCalls(), processCalls(f), timeCalls()} {
		for _, c := range list {
			try(c, f)
		}
	}
	runtime.KeepAlive(room)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.RemoveAll(dir)
}

// try makes a call with valid arguments, and then with one wrong argument at a time.
func try(c call, f files) {
	args := make([]uintptr, 6)
	reset := func() {
		for i, a := range c.args {
			args[i] = a.value
		}
	}
	reset()
	show(c, "right", args)
	for i, a := range c.args {
		for _, w := range wrong(a.kind, f) {
			if (c.name == "fchmod" || c.name == "fchown") && w.value == uintptr(f.null) {
				continue // on Linux, root would change the system's /dev/null
			}
			reset()
			args[i] = w.value
			show(c, fmt.Sprintf("argument %d %s", i+1, w.name), args)
		}
	}
}

type wrongValue struct {
	name  string
	value uintptr
}

func wrong(k kind, f files) []wrongValue {
	switch k {
	case descriptor:
		return []wrongValue{
			{"-1", ^uintptr(0)}, {"not open", 999}, {"a file", uintptr(f.file)}, {"a folder", uintptr(f.dir)},
			{"a pipe", uintptr(f.pipe[0])}, {"the other end of a pipe", uintptr(f.pipe[1])}, {"a Unix socket", uintptr(f.unix[0])},
			{"a TCP socket", uintptr(f.tcp)}, {"a UDP socket", uintptr(f.udp)}, {"an epoll set", uintptr(f.epoll)},
			{"an eventfd", uintptr(f.event)}, {"/dev/null", uintptr(f.null)},
		}
	case address:
		return []wrongValue{{"none", 0}, {"nowhere", nowhere}, {"outside", outside}, {"at the end", ^uintptr(0) - 7}}
	case size:
		return []wrongValue{{"-1", ^uintptr(0)}, {"the least", 1 << 63}, {"0", 0}}
	case count:
		return []wrongValue{{"-1", ^uintptr(0)}, {"the least", 1 << 31}, {"0", 0}}
	}
	return nil
}

// show makes a call and prints its errno.
func show(c call, what string, args []uintptr) {
	r, _, errno := syscall.Syscall6(c.number, args[0], args[1], args[2], args[3], args[4], args[5])
	text := "ok"
	if errno != 0 {
		text = fmt.Sprintf("errno %d", int(errno))
	} else if makes[c.name] {
		syscall.Close(int(r))
	}
	fmt.Printf("%s: %s\t%s\n", c.name, what, text)
}

// makes are the calls that return a descriptor, which has to be closed.
var makes = map[string]bool{
	"open": true, "openat": true, "openat2": true, "creat": true, "dup": true, "socket": true, "accept": true, "accept4": true,
	"epoll_create": true, "epoll_create1": true, "eventfd": true, "eventfd2": true, "timerfd_create": true, "inotify_init1": true, "memfd_create": true, "pidfd_open": true,
}
