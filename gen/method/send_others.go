//go:build linux && (!amd64 || dpdk)

package method

import "golang.org/x/sys/unix"

// sendAgain is send of b, which is not empty, so often, at least once, or until one does
// not go: then errno says why, and sent how many went before.
func sendAgain(fd int, b []byte, times int) (sent int, errno unix.Errno) {
	for ; sent < times; sent++ {
		if errno = send(fd, b); errno != 0 {
			break
		}
	}
	return sent, errno
}
