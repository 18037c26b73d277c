package rt

import (
	"os"
	"syscall"
	_ "unsafe" // for go:linkname

	"loam/posix"
)

// System calls that a program makes in assembly of its own trap, and are served here as
// if they had come through the door. The runtime's side of this is
// unikernel/overlay/_std/runtime/loam_trap.go.

// startTraps begins to serve calls that have trapped.
func startTraps() {
	beginTraps()
	go serveTraps()
}

//go:linkname beginTraps runtime.loamServeTraps
func beginTraps()

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

// kernelIsOurs says that what is not in the table may be asked of the kernel: it is
// Loam's. Linux must not serve what has trapped.
var kernelIsOurs bool

// trapped serves a call as the kernel would: the result is what it leaves in RAX.
func trapped(number, a1, a2, a3, a4, a5, a6 uintptr) uintptr {
	if number == syscall.SYS_EXIT_GROUP {
		os.Exit(int(int32(a1)))
	}
	r1, errno := uintptr(0), uintptr(syscall.ENOSYS)
	switch {
	case number < uintptr(len(takes)) && takes[number] != uint8(posix.TakesNone):
		r1, errno = call(number, a1, a2, a3, a4, a5, a6)
	case kernelIsOurs:
		v, _, e := hostCall(number, a1, a2, a3, a4, a5, a6)
		r1, errno = v, uintptr(e)
	}
	if errno != 0 {
		return -errno
	}
	return r1
}
