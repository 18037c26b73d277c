package rt

import (
	"os"
	_ "unsafe" // for go:linkname

	"loam/abi/linux"
)

// Serving system calls that trap, which are those in a program's own assembly code. They are served as if they had come
// through package syscall. The runtime's part is unikernel/overlay/_std/runtime/loam_trap.go.

// startTraps starts the goroutine that serves trapped calls.
func startTraps() {
	beginTraps()
	go serveTraps()
}

//go:linkname beginTraps runtime.loamServeTraps
func beginTraps()

// nextTrap waits for a goroutine whose call has trapped. Until trapReturn, its stack does not move and its
// registers keep alive what they point to.
//
//go:linkname nextTrap runtime.loamNextTrap
func nextTrap() (trap uintptr)

//go:linkname trapCall runtime.loamTrapCall
func trapCall(trap uintptr) (number, a1, a2, a3, a4, a5, a6 uintptr)

// trapReturn makes the call return result: a value, or a negated errno.
//
//go:linkname trapReturn runtime.loamTrapReturn
func trapReturn(trap, result uintptr)

// serveTraps serves trapped calls forever, each on a goroutine of its own because a call may block.
func serveTraps() {
	for {
		go serveTrap(nextTrap())
	}
}

func serveTrap(trap uintptr) { trapReturn(trap, trapped(trapCall(trap))) }

// kernelIsOurs is set when the kernel is Loam's (in a virtual machine). A call that is not in the table may
// then be passed to the kernel. In a process, Linux must not serve calls that have trapped.
var kernelIsOurs bool

// trapped serves a call and returns what the kernel would leave in RAX: the result, or a negated errno.
func trapped(number, a1, a2, a3, a4, a5, a6 uintptr) uintptr {
	if number == linux.SYS_EXIT_GROUP {
		os.Exit(int(int32(a1)))
	}
	r1, errno := uintptr(0), uintptr(linux.ENOSYS)
	switch {
	case number < uintptr(len(takes)) && takes[number] != ofHost:
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
