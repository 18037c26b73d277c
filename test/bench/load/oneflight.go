package load

import (
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
	data := make([]byte, flightSize)
	sent, start := 0, time.Now()
	for time.Since(start) < span {
		if _, err := c.Write(data); err != nil {
			return nil, err
		}
		if err := acknowledged(raw); err != nil {
			return nil, err
		}
		sent += len(data)
	}
	return Samples{"kB/s": float64(sent) / 1000 / time.Since(start).Seconds()}, nil
}

// acknowledged waits until the peer has acknowledged all data (SIOCOUTQ, tcp(7)).
func acknowledged(raw interface{ Control(func(uintptr)) error }) error {
	for {
		left := 0
		var err error
		if failed := raw.Control(func(fd uintptr) { left, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }); failed != nil {
			return failed
		}
		if err != nil || left == 0 {
			return err
		}
		time.Sleep(20 * time.Microsecond)
	}
}
