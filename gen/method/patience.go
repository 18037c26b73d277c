//go:build linux

package method

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxPatience bounds how long Send waits for one frame to find room.
const maxPatience = time.Second

// patience is waiting for room. The zero value has not waited yet.
type patience struct{ since time.Time }

// wait counts a refusal, waits until it is worth while to try again, and returns
// nil. Where the refusal is for good, because of the frame, it returns errRefused;
// any other error ends the sending.
func (p *patience) wait(fd int, c *counters, errno unix.Errno) error {
	const nap = 20 * time.Microsecond
	switch errno {
	case unix.EINTR, unix.ECONNREFUSED: // the second: what an ICMP error says about an earlier datagram
		return nil
	case unix.EMSGSIZE, unix.EINVAL:
		c.refused.Add(1)
		return errRefused
	}
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
	} else if now.Sub(p.since) > maxPatience {
		return fmt.Errorf("no frame could leave for %v: %w", maxPatience, errno)
	}
	switch errno {
	case unix.EAGAIN, unix.EBUSY:
		c.busy.Add(1)
		return writable(fd, 10*time.Millisecond)
	case unix.ENOBUFS, unix.ENOMEM: // a full queue, which does not tell when there is room
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

// errRefused says that the kernel does not want this frame; others may go.
var errRefused = errors.New("refused")

// drained waits until a socket has nothing on its way to the interface: neither
// in a queueing discipline nor in the driver.
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
