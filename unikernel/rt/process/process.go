// Package process joins Loam to a program that runs as a process of Linux: it starts
// package rt, and seals the process. From then on the host serves only what package seal
// lets through. What else the program asks for in assembly of its own traps, and is
// served as if it had come through the door. It is the only package that a guest of that
// kind imports.
package process

import (
	"strconv"
	"syscall"
	"unsafe" // and for go:linkname

	"loam/unikernel/rt"
	"loam/unikernel/seal"
)

func init() { rt.StartProcess(sealHost) }

// hostCall makes a system call of the host's, past the door.
//
//go:linkname hostCall syscall.linuxSyscall6
func hostCall(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err syscall.Errno)

// sealHost seals the process. The network is there, and all files of the host are
// open that will be needed.
func sealHost() error {
	pollInit()
	first := closeLeaked()
	own := seal.Process{PID: uint32(syscall.Getpid()), Socket: rt.Handed(), First: -1}
	if own.Socket >= 0 {
		own.First = first
		fillGaps(own.Socket, first)
	}
	var places []seal.Place
	callPlaces(func(name string, after uintptr) {
		places = append(places, seal.Place{Name: name, After: uint64(after)})
	})
	filter, err := seal.Filter(seal.Calls, places, own)
	if err != nil {
		return err
	}
	if err := seal.Install(filter, hostCall); err != nil {
		return err
	}
	rt.TakeHanded(own.First)
	return nil
}

// firstOwn is the least descriptor that is no standard stream.
const firstOwn = 3

// closeLeaked closes the descriptors that the program has inherited by mistake of
// others, and returns a number above those that stay. All of ours are to be closed on
// exec by now, and the standard streams are below.
func closeLeaked() (end int) {
	end = firstOwn
	for _, fd := range descriptors() {
		flags, _, errno := hostCall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0, 0, 0, 0)
		switch {
		case fd < firstOwn || errno != 0:
		case flags&syscall.FD_CLOEXEC == 0:
			hostCall(syscall.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
		default:
			end = max(end, fd+1)
		}
	}
	return end
}

// descriptors are those that are open, among numbers that may be, as /proc says; and
// without that all numbers that there may be.
func descriptors() (list []int) {
	name := []byte("/proc/self/fd\x00")
	const here = ^uintptr(99) // AT_FDCWD
	dir, _, errno := hostCall(syscall.SYS_OPENAT, here, uintptr(unsafe.Pointer(&name[0])), syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return possible()
	}
	defer hostCall(syscall.SYS_CLOSE, dir, 0, 0, 0, 0, 0)
	room := make([]byte, 4096)
	for {
		n, _, errno := hostCall(syscall.SYS_GETDENTS64, dir, uintptr(unsafe.Pointer(&room[0])), uintptr(len(room)), 0, 0, 0)
		if errno != 0 {
			return possible()
		}
		if n == 0 {
			return list
		}
		_, _, names := syscall.ParseDirent(room[:n], -1, nil)
		for _, name := range names {
			if fd, err := strconv.Atoi(name); err == nil && fd != int(dir) {
				list = append(list, fd)
			}
		}
	}
}

// possible are all numbers up to the most descriptors that a process may have.
func possible() (list []int) {
	const most = 1 << 20 // fs.nr_open, unless somebody has changed that
	for fd := range most {
		list = append(list, fd)
	}
	return list
}

// fillGaps has every number below first be in use: what is handed over from now on lies
// from there on, apart from all else. Copies of fd fill the gaps.
func fillGaps(fd, first int) {
	for {
		n, _, errno := hostCall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0, 0, 0, 0)
		if errno != 0 {
			return
		}
		if int(n) >= first {
			hostCall(syscall.SYS_CLOSE, n, 0, 0, 0, 0, 0)
			return
		}
	}
}

// pollInit opens what the poller of the runtime needs.
//
//go:linkname pollInit runtime.loamPollInit
func pollInit()

// callPlaces tells place where system calls are made that the seal knows.
//
//go:linkname callPlaces runtime.loamPlaces
func callPlaces(place func(name string, after uintptr))
