package posix

import (
	"loam/abi/linux"
	"loam/stack"
)

// SO_TIMESTAMP and SO_TIMESTAMPNS of TCP sockets. A control message contains the arrival time of the
// last byte received. At most one of the two options is on.

var (
	timestamp   = optionName{linux.SOL_SOCKET, linux.SO_TIMESTAMP}
	timestampNS = optionName{linux.SOL_SOCKET, linux.SO_TIMESTAMPNS}
)

func (s *tcpSocket) isStamped(key optionName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opts.Stamps && s.nanoseconds == (key == timestampNS)
}

func (s *tcpSocket) setStamped(key optionName, value []byte) Errno {
	n, errno := parseInt(value)
	if errno != 0 {
		return errno
	}
	s.mu.Lock()
	s.nanoseconds = key == timestampNS
	s.mu.Unlock()
	return s.setOptions(func(o *stack.TCPOptions) { o.Stamps = n != 0 })
}

// arrival returns the control message for the bytes just read, or for the next peek bytes.
func (s *tcpSocket) arrival(c *stack.TCPConn, peek int) []Control {
	s.mu.Lock()
	on, w := s.opts.Stamps, wantedControl{time: !s.nanoseconds, nanoseconds: s.nanoseconds}
	s.mu.Unlock()
	if !on {
		return nil
	}
	return w.timeMessage(c.Arrived(peek))
}
