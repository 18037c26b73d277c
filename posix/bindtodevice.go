package posix

import (
	"bytes"

	"loam/abi/linux"
	"loam/stack"
)

// SO_BINDTODEVICE (socket(7)).

var bindToDevice = optionName{linux.SOL_SOCKET, linux.SO_BINDTODEVICE}

// deviceOf returns the interface that an option value names, or nil for an empty name. Errors: ENODEV.
func deviceOf(net *stack.Stack, value []byte) (*stack.Interface, Errno) {
	name, _, _ := bytes.Cut(value, []byte{0})
	if len(name) == 0 {
		return nil, 0
	}
	if i := interfaceNamed(net, string(name)); i != nil {
		return i, 0
	}
	return nil, linux.ENODEV
}

// deviceName returns the name of an interface and a NUL; nil for no interface.
func deviceName(on *stack.Interface) []byte {
	if on == nil {
		return nil
	}
	return append([]byte(on.Name()), 0)
}

func (s *udpSocket) bindToDevice(value []byte) Errno {
	on, errno := deviceOf(s.net, value)
	if errno != 0 {
		return errno
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Device = on
	if c := s.conn.Load(); c != nil {
		c.SetDevice(on)
	}
	return 0
}

func (s *udpSocket) deviceName() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return deviceName(s.opts.Device)
}

func (s *tcpSocket) bindToDevice(value []byte) Errno {
	on, errno := deviceOf(s.net, value)
	if errno != 0 {
		return errno
	}
	s.mu.Lock()
	if s.binding != nil {
		s.binding.SetDevice(on)
	}
	s.mu.Unlock()
	return s.setOptions(func(o *stack.TCPOptions) { o.Device = on })
}
