package inet

import (
	"loam/abi/linux"
	"loam/posix/netdevice"
	"loam/posix/socket"
	"loam/stack"
)

// SO_BINDTODEVICE binds a socket to an interface (socket(7)).

var bindToDevice = socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_BINDTODEVICE}

func (s *UDPSocket) bindToDevice(value []byte) linux.Errno {
	on, errno := netdevice.FromOption(s.net, value)
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

func (s *UDPSocket) deviceName() []byte {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return netdevice.OptionValue(s.opts.Device)
}

func (s *TCPSocket) bindToDevice(value []byte) linux.Errno {
	on, errno := netdevice.FromOption(s.net, value)
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
