package inet

import (
	"loam/abi/linux"
	"loam/posix/socket"
	"loam/stack"
)

// SO_TIMESTAMP and SO_TIMESTAMPNS of TCP sockets. A control message contains the arrival time of the
// last byte received. At most one of the two options is on.

var (
	timestamp   = socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_TIMESTAMP}
	timestampNS = socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_TIMESTAMPNS}
)

func (s *TCPSocket) isStamped(key socket.OptionName) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.opts.Stamps && s.nanoseconds == (key == timestampNS)
}

func (s *TCPSocket) setStamped(key socket.OptionName, value []byte) linux.Errno {
	n, errno := socket.ParseInt(value)
	if errno != 0 {
		return errno
	}
	s.Mu.Lock()
	s.nanoseconds = key == timestampNS
	s.Mu.Unlock()
	return s.setOptions(func(o *stack.TCPOptions) { o.Stamps = n != 0 })
}

// arrival returns the control message for the bytes just read, or for the next peek bytes.
func (s *TCPSocket) arrival(c *stack.TCPConn, peek int) []socket.Control {
	s.Mu.Lock()
	on, w := s.opts.Stamps, WantedControl{Time: !s.nanoseconds, Nanoseconds: s.nanoseconds}
	s.Mu.Unlock()
	if !on {
		return nil
	}
	return w.TimeMessage(c.Arrived(peek))
}
