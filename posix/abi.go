package posix

import "loam/abi/linux"

// Errno is an error number of Linux; 0 is success.
type Errno = linux.Errno

// Events is a set of poll(2) events; epoll(7) uses the same bits.
type Events uint32

// Events.
const (
	PollIn    Events = linux.POLLIN
	PollPri   Events = linux.POLLPRI
	PollOut   Events = linux.POLLOUT
	PollErr   Events = linux.POLLERR
	PollHup   Events = linux.POLLHUP
	PollNval  Events = linux.POLLNVAL
	PollRdHup Events = linux.POLLRDHUP
)

// pollGone is reported to a file's queue after the file has been closed. It is internal to this package
// and never returned to programs.
const pollGone Events = 1 << 20

// pollAlways is the set of events that poll and epoll report even if they are not requested.
const pollAlways = PollErr | PollHup

// toErrno returns the error number of an error of the stack or the file tree; nil becomes 0.
func toErrno(err error) Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(Errno); ok {
		return e
	}
	if e, ok := err.(interface{ Errno() Errno }); ok {
		return e.Errno()
	}
	return linux.EIO
}
