//go:build linux && !dpdk

package method

import "golang.org/x/sys/unix"

// sendAgain is send of b, which is not empty, so often, at least once, or until one does
// not go: then errno says why, and sent how many went before.
//
// It is a loop in assembly for the sake of the way back. Measured on a processor of AMD whose
// kernel guards against SRSO, each RET between a system call and the loop around it, of
// which the way through package unix has three, took some 17 ns: probably since the kernel
// leaves nothing of where functions return to. Together that is 3 % of a short datagram.
//
// Safety: as send. The collector waits until all have gone.
func sendAgain(fd int, b []byte, times int) (sent int, errno unix.Errno) {
	sent, e := sendTimes(fd, &b[0], uintptr(len(b)), sendFlags, times)
	return sent, unix.Errno(e)
}

// sendTimes is in send_amd64.s. It keeps no pointer, and its stack does not grow.
//
//go:noescape
func sendTimes(fd int, b *byte, length, flags uintptr, times int) (sent int, errno uintptr)
