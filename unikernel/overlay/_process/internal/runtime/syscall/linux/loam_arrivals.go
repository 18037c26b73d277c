package linux

// loamArrived records the events of handed-over connections. It is implemented in package runtime.
//
//go:noescape
func loamArrived(events []EpollEvent)

// EpollWait calls the toolchain's function, linuxEpollWait, and passes the events to loamArrived.
func EpollWait(epfd int32, events []EpollEvent, maxev, waitms int32) (n int32, errno uintptr) {
	n, errno = linuxEpollWait(epfd, events, maxev, waitms)
	if errno == 0 {
		loamArrived(events[:n])
	}
	return n, errno
}
