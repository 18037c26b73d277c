package load

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"loam/test/bench/subject"
)

// oneFlight sends one segment at a time, as small TCP/IP stacks do: the next segment is sent when the
// peer has acknowledged the one before. The client's half runs on the kernel's stack.
//
// Samples: "kB/s".
type oneFlight struct{}

// flightSize is the payload of a segment in bytes.
const flightSize = 1000

func (oneFlight) Serve(h subject.Host) error {
	return serve(h, func(c net.Conn) {
		io.Copy(io.Discard, c)
		c.Close()
	})
}

func (oneFlight) Run(h subject.Host, peer netip.Addr, span time.Duration) (Samples, error) {
	c, err := dial(h, peer)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	kernels, ok := c.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("%T is no connection of the kernel's", c)
	}
	raw, err := kernels.SyscallConn()
	if err != nil {
		return nil, err
	}
	sent, start := 0, time.Now()
	failed := raw.Control(func(fd uintptr) { sent, err = oneByOne(int(fd), span) })
	if failed != nil || err != nil {
		return nil, errors.Join(failed, err)
	}
	return Samples{"kB/s": float64(sent) / 1000 / time.Since(start).Seconds()}, nil
}

// oneByOne sends segments for about the duration span, and returns how many bytes were
// acknowledged.
func oneByOne(fd int, span time.Duration) (sent int, err error) {
	const stamps = unix.SOF_TIMESTAMPING_TX_ACK | unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_OPT_TSONLY
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, stamps); err != nil {
		return 0, err
	}
	data := make([]byte, flightSize)
	for start := time.Now(); time.Since(start) < span; sent += len(data) {
		if _, err := unix.Write(fd, data); err != nil {
			return sent, err
		}
		if err := acknowledged(fd); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// acknowledged waits until the peer has acknowledged all data. The kernel reports that on the error queue
// (SOF_TIMESTAMPING_TX_ACK), so the wait ends with the acknowledgment: a sleep would take several times as
// long as the acknowledgment.
func acknowledged(fd int) error {
	var oob [512]byte
	for {
		left, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		if err != nil || left == 0 {
			return err
		}
		waits := []unix.PollFd{{Fd: int32(fd)}} // POLLERR is always reported
		switch n, err := unix.Poll(waits, 1000); {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("no acknowledgment in a second")
		}
		if _, _, _, _, err := unix.Recvmsg(fd, nil, oob[:], unix.MSG_ERRQUEUE); err != nil && err != unix.EAGAIN {
			return err
		}
	}
}
