package file

import "loam/abi/linux"

// Events is a set of poll(2) events; epoll(7) uses the same bits.
type Events uint32

// Values of Events: the numbers of POLLIN and others in poll(2). PollIn and PollOut have two bits each, because nearly all
// files report POLLRDNORM together with POLLIN, and POLLWRNORM together with POLLOUT.
const (
	PollIn    Events = linux.POLLIN | linux.POLLRDNORM
	PollPri   Events = linux.POLLPRI
	PollOut   Events = linux.POLLOUT | linux.POLLWRNORM
	PollBand  Events = linux.POLLWRBAND // reported with PollOut for Unix and datagram sockets
	PollErr   Events = linux.POLLERR
	PollHup   Events = linux.POLLHUP
	PollNval  Events = linux.POLLNVAL
	PollRdHup Events = linux.POLLRDHUP
)

// PollGone is reported to a file's queue after the file has been closed. It is internal to this package
// and never returned to programs.
const PollGone Events = 1 << 20

// PollAlways is the set of events that poll and epoll report even if they are not requested.
const PollAlways = PollErr | PollHup

// oneSuffices reports whether a single waiter can handle the event: data or room has arrived, but not both.
func (e Events) oneSuffices() bool {
	const in, out = PollIn | PollPri, PollOut | PollBand
	return e&^in == 0 || e&^out == 0
}

// ToErrno returns the error number of an error of the stack or the file tree; nil becomes 0.
func ToErrno(err error) linux.Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(linux.Errno); ok {
		return e
	}
	if e, ok := err.(interface{ Errno() linux.Errno }); ok {
		return e.Errno()
	}
	return linux.EIO
}
