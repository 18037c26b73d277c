//go:build linux

package method

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultPatience is the default time that Send waits until a frame is accepted: see Patient.
const DefaultPatience = time.Second

// patience measures one wait for a frame to be accepted. In the zero value, the wait has not begun.
type patience struct{ since time.Time }

// wait handles the error errno of an attempt to send a frame. It counts the error and waits until another attempt may
// succeed, and then returns nil. If the frame itself is the cause, it returns errRefused. After any other error,
// sending must end.
func (p *patience) wait(fd int, c *counters, errno unix.Errno) error {
	const nap = 20 * time.Microsecond
	switch errno {
	case unix.EINTR, unix.ECONNREFUSED: // ECONNREFUSED reports an ICMP error about an earlier datagram
		return nil
	case unix.EMSGSIZE, unix.EINVAL:
		c.refused.Add(1)
		return errRefused
	}
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
	} else if most := c.patience(); now.Sub(p.since) > most {
		return fmt.Errorf("no frame could leave for %v: %w", most, errno)
	}
	switch errno {
	case unix.EAGAIN, unix.EBUSY:
		c.busy.Add(1)
		return writable(fd, 10*time.Millisecond)
	case unix.ENOBUFS, unix.ENOMEM: // a queue is full, and the kernel does not report when it has room
		c.noBuffers.Add(1)
		time.Sleep(nap)
	case unix.ENETDOWN, unix.ENXIO:
		c.down.Add(1)
		time.Sleep(time.Millisecond)
	default:
		return os.NewSyscallError("send", errno)
	}
	return nil
}

// errRefused reports that the kernel rejects this frame. Other frames can still be sent.
var errRefused = errors.New("refused")

// drained waits until all data that was written to a socket has been sent by the interface: none is left in a queueing
// discipline or in the driver. After timeout it returns ErrTimeout.
func drained(fd int, timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Microsecond) {
		n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		switch {
		case err != nil:
			return os.NewSyscallError("SIOCOUTQ", err)
		case n == 0:
			return nil
		case time.Now().After(deadline):
			return ErrTimeout
		}
	}
}
