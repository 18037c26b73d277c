// Package process joins Loam to a program that runs as a process of Linux: it starts
// package rt, and seals the process. From then on the host serves only what package seal
// lets through. What else the program asks for in assembly of its own traps, and is
// served as if it had come through the door. It is the only package that a guest of that
// kind imports.
package process

import (
	"syscall"
	_ "unsafe" // for go:linkname

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

// maxLeaked bounds the search for descriptors that were leaked.
const maxLeaked = 1024

// closeLeaked closes the descriptors that the program has inherited by mistake of
// others, and returns a number above those that stay. All of ours are to be closed on
// exec by now, and the standard streams are below.
func closeLeaked() (end int) {
	const firstOwn = 3
	end = firstOwn
	for fd := firstOwn; fd < maxLeaked; fd++ {
		flags, _, errno := hostCall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0, 0, 0, 0)
		switch {
		case errno != 0:
		case flags&syscall.FD_CLOEXEC == 0:
			hostCall(syscall.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
		default:
			end = fd + 1
		}
	}
	return end
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
