package posix

import (
	"bytes"
	"syscall"

	"loam/stack"
)

// SO_BINDTODEVICE of sockets for datagrams (socket(7)).

// bindToDevice binds the socket to the interface that value names, or to none. Errors:
// ENODEV.
func (s *udpSocket) bindToDevice(value []byte) Errno {
	name, _, _ := bytes.Cut(value, []byte{0})
	var on *stack.Interface
	if len(name) > 0 {
		if on = s.interfaceNamed(string(name)); on == nil {
			return syscall.ENODEV
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.device = on
	if c := s.conn.Load(); c != nil {
		c.SetDevice(on)
	}
	return 0
}

// deviceName is the interface that the socket is bound to, with a NUL; nothing if to none.
func (s *udpSocket) deviceName() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.device == nil {
		return nil
	}
	return append([]byte(s.device.Name()), 0)
}

// interfaceNamed finds an interface by its name, or nil.
func (s *udpSocket) interfaceNamed(name string) *stack.Interface {
	for _, i := range s.net.Interfaces() {
		if i.Name() == name {
			return i
		}
	}
	return nil
}
