// Command errno makes system calls with arguments that are wrong, one at a time, and prints
// the errno of each. Run on Linux and on Loam it prints the same.
package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// kind is what an argument is, and so in what ways it may be wrong.
type kind int

const (
	number     kind = iota // it is not changed
	descriptor             // -1, one that is not open, and those of other kinds
	address                // none, and one where nothing is
	size                   // less than 0, and more than there is memory
	count                  // less than 0
)

// arg is an argument that is right.
type arg struct {
	kind  kind
	value uintptr
}

// call is a system call, with arguments that are right.
type call struct {
	name   string
	number uintptr
	args   []arg
}

// Addresses where nothing is: in the lower half, and where no address can be.
const (
	nowhere = 0x0dead000
	outside = 1 << 50
)

// room keeps alive the memory that arguments point to.
var room []any

// at returns the address of memory with some content, which stays.
func at[T any](value T) arg {
	p := new(T)
	*p = value
	room = append(room, p)
	return arg{address, uintptr(unsafe.Pointer(p))}
}

// path returns the address of a string with a NUL.
func path(s string) arg {
	b := append([]byte(s), 0)
	room = append(room, b)
	return arg{address, uintptr(unsafe.Pointer(&b[0]))}
}

// fixed returns an argument that is not changed: a wait without a time would not end.
func fixed(a arg) arg { return arg{number, a.value} }

// pointer makes a pointer of an address where nothing is. (The detour is for vet.)
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
	for _, c := range calls(f) {
		try(c, f)
	}
	runtime.KeepAlive(room)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.RemoveAll(dir)
}

// try makes a call as it should be, and with each argument wrong in each way.
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
			if c.name == "fchmod" && w.value == uintptr(f.null) {
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

// show makes a call and prints what it says.
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

// makes are the calls that return a descriptor.
var makes = map[string]bool{
	"open": true, "openat": true, "openat2": true, "creat": true, "dup": true, "socket": true, "accept": true, "accept4": true,
	"epoll_create": true, "epoll_create1": true, "eventfd": true, "eventfd2": true, "timerfd_create": true, "inotify_init1": true, "memfd_create": true,
}
