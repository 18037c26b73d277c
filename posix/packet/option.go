package packet

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/bpf"
	"loam/posix/inet"
	"loam/posix/netdevice"
	"loam/posix/socket"
)

// packetHarmless are options that can be set and read but have no effect.
var packetHarmless = map[socket.OptionName]bool{
	{Level: linux.SOL_PACKET, Name: linux.PACKET_ORIGDEV}:      true,
	{Level: linux.SOL_PACKET, Name: linux.PACKET_COPY_THRESH}:  true,
	{Level: linux.SOL_PACKET, Name: linux.PACKET_LOSS}:         true,
	{Level: linux.SOL_PACKET, Name: linux.PACKET_TIMESTAMP}:    true,
	{Level: linux.SOL_PACKET, Name: linux.PACKET_QDISC_BYPASS}: true,
	{Level: linux.SOL_SOCKET, Name: linux.SO_LOCK_FILTER}:      true,
	{Level: linux.SOL_SOCKET, Name: linux.SO_SNDBUF}:           true,
}

func (s *Socket) Option(level, name int) ([]byte, linux.Errno) {
	key := socket.OptionName{Level: level, Name: name}
	s.Mu.Lock()
	aux, times, buffer, version, reserve := s.auxData, s.times, s.buffer, s.version, s.reserve
	s.Mu.Unlock()
	switch {
	case packetHarmless[key]:
		return s.Recall(key), 0
	// value: struct tpacket_stats, or struct tpacket_stats_v3
	case key == socket.OptionName{Level: linux.SOL_PACKET, Name: linux.PACKET_STATISTICS}:
		frames, dropped := s.conn.TakeStats()
		b := append(socket.IntValue(int(frames)), socket.IntValue(int(dropped))...)
		if version == linux.TPACKET_V3 {
			b = append(b, socket.IntValue(0)...) // tp_freeze_q_cnt, the number of times the ring was full, is not counted
		}
		return b, 0
	case key == socket.OptionName{Level: linux.SOL_PACKET, Name: linux.PACKET_VERSION}:
		return socket.IntValue(version), 0
	case key == socket.OptionName{Level: linux.SOL_PACKET, Name: linux.PACKET_RESERVE}:
		return socket.IntValue(reserve), 0
	case key == socket.OptionName{Level: linux.SOL_PACKET, Name: linux.PACKET_AUXDATA}:
		return socket.BoolValue(aux), 0
	case level != linux.SOL_SOCKET:
		return nil, linux.ENOPROTOOPT
	case name == linux.SO_RCVBUF:
		if buffer == 0 {
			buffer = defaultPacketBuffer
		}
		return socket.IntValue(buffer), 0
	case name == linux.SO_TIMESTAMP:
		return socket.BoolValue(times.Time), 0
	case name == linux.SO_TIMESTAMPNS:
		return socket.BoolValue(times.Nanoseconds), 0
	case name == linux.SO_BINDTODEVICE:
		on, _ := s.conn.Bound()
		return netdevice.OptionValue(on), 0
	}
	return s.Base.Option(name)
}

// OptionFor implements getsockopt of PACKET_HDRLEN: the size of the header of a frame in a ring. request contains the version of
// the ring. Errors: EINVAL, ENOPROTOOPT.
func (s *Socket) OptionFor(level, name int, request []byte) ([]byte, linux.Errno) {
	if level != linux.SOL_PACKET || name != linux.PACKET_HDRLEN {
		return nil, linux.ENOPROTOOPT
	}
	const wordSize = 4
	if len(request) < wordSize {
		return nil, linux.EINVAL
	}
	switch int32(binary.NativeEndian.Uint32(request)) {
	case linux.TPACKET_V1, linux.TPACKET_V2:
		return socket.IntValue(slotHeader), 0
	case linux.TPACKET_V3:
		return socket.IntValue(frameHeader), 0
	}
	return nil, linux.EINVAL
}

// defaultPacketBuffer is the initial value of SO_RCVBUF, in bytes (net.core.rmem_default).
const defaultPacketBuffer = 212992

func (s *Socket) SetOption(level, name int, value []byte) linux.Errno {
	key := socket.OptionName{Level: level, Name: name}
	switch {
	case packetHarmless[key]:
		return s.Remember(key, value)
	case level == linux.SOL_PACKET:
		return s.setPacketOption(name, value)
	case level != linux.SOL_SOCKET:
		return linux.ENOPROTOOPT
	}
	switch name {
	case linux.SO_ATTACH_FILTER, linux.SO_DETACH_FILTER:
		return s.setFilter(name, value)
	case linux.SO_TIMESTAMP, linux.SO_TIMESTAMPNS, linux.SO_RCVBUF, linux.SO_RCVBUFFORCE:
		n, errno := socket.ParseInt(value)
		if errno == 0 {
			s.setNumber(name, n)
		}
		return errno
	case linux.SO_BINDTODEVICE:
		on, errno := netdevice.FromOption(s.net, value)
		if errno == 0 {
			_, kind := s.conn.Bound()
			s.conn.Bind(on, kind)
		}
		return errno
	}
	return s.Base.SetOption(name, value)
}

// setPacketOption sets an option of level SOL_PACKET. Memberships succeed without any effect, because
// links deliver all frames that they receive. Errors: EINVAL, ENODEV, ENOPROTOOPT.
func (s *Socket) setPacketOption(name int, value []byte) linux.Errno {
	switch name {
	case linux.PACKET_ADD_MEMBERSHIP, linux.PACKET_DROP_MEMBERSHIP:
		const size = 16 // size of struct packet_mreq in bytes
		if len(value) < size {
			return linux.EINVAL
		}
		on, errno := s.interfaceOf(int32(binary.NativeEndian.Uint32(value)))
		if errno == 0 && on == nil {
			errno = linux.ENODEV
		}
		return errno
	case linux.PACKET_RX_RING:
		return s.setRing(value)
	case linux.PACKET_VERSION, linux.PACKET_RESERVE:
		return s.setRingOption(name, value)
	case linux.PACKET_AUXDATA, linux.PACKET_IGNORE_OUTGOING:
		n, errno := socket.ParseInt(value)
		if errno != 0 {
			return errno
		}
		if name == linux.PACKET_IGNORE_OUTGOING {
			s.conn.IgnoreOutgoing(n != 0)
			return 0
		}
		s.Mu.Lock()
		s.auxData = n != 0
		s.Mu.Unlock()
		return 0
	}
	return linux.ENOPROTOOPT
}

// setRingOption sets an option that must be set before the ring exists. Errors: EINVAL, EBUSY.
func (s *Socket) setRingOption(name int, value []byte) linux.Errno {
	n, errno := socket.ParseInt(value)
	if errno != 0 {
		return errno
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch {
	case s.ring.Load() != nil:
		return linux.EBUSY
	case name == linux.PACKET_RESERVE && n >= 0:
		s.reserve = n
	case name == linux.PACKET_VERSION && n >= linux.TPACKET_V1 && n <= linux.TPACKET_V3:
		s.version = n
	default:
		return linux.EINVAL
	}
	return 0
}

// setNumber sets an option of level SOL_SOCKET with an int value.
func (s *Socket) setNumber(name, n int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch name {
	case linux.SO_TIMESTAMP: // SO_TIMESTAMP and SO_TIMESTAMPNS replace each other
		s.times = inet.WantedControl{Time: n != 0}
	case linux.SO_TIMESTAMPNS:
		s.times = inet.WantedControl{Nanoseconds: n != 0}
	default:
		s.buffer = max(4608, min(2*n, socket.MaxBuffer))
		s.conn.SetReceiveBuffer(s.buffer)
	}
}

// setFilter implements SO_ATTACH_FILTER and SO_DETACH_FILTER. Errors: EINVAL; ENOENT without a filter;
// EPERM if the filter is locked.
func (s *Socket) setFilter(name int, value []byte) linux.Errno {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Kept(socket.OptionName{Level: linux.SOL_SOCKET, Name: linux.SO_LOCK_FILTER}) != 0 {
		return linux.EPERM
	}
	if name == linux.SO_DETACH_FILTER {
		if !s.filter {
			return linux.ENOENT
		}
		s.filter = false
		s.conn.SetFilter(nil)
		return 0
	}
	p, err := bpf.New(inet.FilterInstructions(value))
	if err != nil {
		return linux.EINVAL
	}
	s.filter = true
	s.conn.SetFilter(p.Run)
	return 0
}
