package posix

import (
	"syscall"

	"loam/stack"
)

// SO_TIMESTAMP and SO_TIMESTAMPNS of TCP: with what is received comes when its last byte
// arrived. One of them is on at most.

var (
	timestamp   = optionName{syscall.SOL_SOCKET, syscall.SO_TIMESTAMP}
	timestampNS = optionName{syscall.SOL_SOCKET, soTimestampNS}
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

// arrival is the control message about bytes that were read, or that are peek bytes ahead.
func (s *tcpSocket) arrival(c *stack.TCPConn, peek int) []Control {
	s.mu.Lock()
	on, w := s.opts.Stamps, wantedControl{time: !s.nanoseconds, nanoseconds: s.nanoseconds}
	s.mu.Unlock()
	if !on {
		return nil
	}
	return w.timeMessage(c.Arrived(peek))
}
