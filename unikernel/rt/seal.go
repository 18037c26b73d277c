package rt

import (
	"os"
	"syscall"
	_ "unsafe" // for go:linkname

	"loam/posix"
	"loam/unikernel/guest"
	"loam/unikernel/seal"
)

// The seal: from here on the host serves only what package seal lets through. What
// else a program asks for in its own assembly traps, and is served here as if it had
// come through the door.

// sealHost seals the process. The network is there, and all files of the host are
// open that will be needed.
func sealHost(c guest.Config) error {
	closeLeaked(c)
	openMaps()
	pollInit()
	var places []seal.Place
	callPlaces(func(name string, after uintptr) {
		places = append(places, seal.Place{Name: name, After: uint64(after)})
	})
	filter, err := seal.Filter(seal.Calls, places, uint32(syscall.Getpid()))
	if err != nil {
		return err
	}
	go serveTraps()
	return seal.Install(filter, hostCall)
}

// maxLeaked bounds the search for descriptors that were leaked.
const maxLeaked = 1024

// closeLeaked closes the descriptors that the program has inherited by mistake of
// others: those that are neither the standard streams, nor named by the loam command,
// nor ours, which are all to be closed on exec.
func closeLeaked(c guest.Config) {
	named := map[int]bool{}
	for _, l := range c.Links {
		named[l.Trace] = true
		for _, fd := range l.FDs {
			named[fd] = true
		}
	}
	for fd := 3; fd < maxLeaked; fd++ {
		flags, _, errno := hostCall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0, 0, 0, 0)
		if errno == 0 && flags&syscall.FD_CLOEXEC == 0 && !named[fd] {
			hostCall(syscall.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
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

// nextTrap waits for a goroutine whose call has trapped. Its stack does not move, and
// its registers keep alive what they point to, until trapReturn.
//
//go:linkname nextTrap runtime.loamNextTrap
func nextTrap() (trap uintptr)

//go:linkname trapCall runtime.loamTrapCall
func trapCall(trap uintptr) (number, a1, a2, a3, a4, a5, a6 uintptr)

// trapReturn has the call return: a value, or an errno below zero.
//
//go:linkname trapReturn runtime.loamTrapReturn
func trapReturn(trap, result uintptr)

// serveTraps serves calls that have trapped, each on a goroutine of its own: a call
// may wait.
func serveTraps() {
	for {
		go serveTrap(nextTrap())
	}
}

func serveTrap(trap uintptr) { trapReturn(trap, trapped(trapCall(trap))) }

// trapped serves a call as the kernel would: the result is what it leaves in RAX. A
// call that is the host's has trapped because the host must not serve it.
func trapped(number, a1, a2, a3, a4, a5, a6 uintptr) uintptr {
	if number == syscall.SYS_EXIT_GROUP {
		os.Exit(int(int32(a1)))
	}
	r1, errno := uintptr(0), uintptr(syscall.ENOSYS)
	if number < uintptr(len(takes)) && takes[number] != uint8(posix.TakesNone) {
		r1, errno = call(number, a1, a2, a3, a4, a5, a6)
	}
	if errno != 0 {
		return -errno
	}
	return r1
}
