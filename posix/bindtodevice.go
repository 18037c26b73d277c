package posix

import (
	"bytes"

	"loam/abi/linux"
	"loam/posix/socket"
	"loam/stack"
)

// SO_BINDTODEVICE (socket(7)).

var bindToDevice = socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_BINDTODEVICE}

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
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.opts.Device = on
	if c := s.conn.Load(); c != nil {
		c.SetDevice(on)
	}
	return 0
}

func (s *udpSocket) deviceName() []byte {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return deviceName(s.opts.Device)
}

func (s *tcpSocket) bindToDevice(value []byte) Errno {
	on, errno := deviceOf(s.net, value)
	if errno != 0 {
		return errno
	}
	s.Mu.Lock()
	if s.binding != nil {
		s.binding.SetDevice(on)
	}
	s.Mu.Unlock()
	return s.setOptions(func(o *stack.TCPOptions) { o.Device = on })
}
