package posix

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/bpf"
)

// packetHarmless are options that can be set and read but have no effect.
var packetHarmless = map[optionName]bool{
	{linux.SOL_PACKET, linux.PACKET_ORIGDEV}:      true,
	{linux.SOL_PACKET, linux.PACKET_COPY_THRESH}:  true,
	{linux.SOL_PACKET, linux.PACKET_LOSS}:         true,
	{linux.SOL_PACKET, linux.PACKET_TIMESTAMP}:    true,
	{linux.SOL_PACKET, linux.PACKET_QDISC_BYPASS}: true,
	{linux.SOL_SOCKET, linux.SO_LOCK_FILTER}:      true,
	{linux.SOL_SOCKET, linux.SO_SNDBUF}:           true,
}

func (s *packetSocket) option(level, name int) ([]byte, Errno) {
	key := optionName{level, name}
	s.mu.Lock()
	aux, times, buffer, version, reserve := s.auxData, s.times, s.buffer, s.version, s.reserve
	s.mu.Unlock()
	switch {
	case packetHarmless[key]:
		return s.recall(key), 0
	case key == optionName{linux.SOL_PACKET, linux.PACKET_STATISTICS}: // struct tpacket_stats, tpacket_stats_v3
		frames, dropped := s.conn.TakeStats()
		b := append(intValue(int(frames)), intValue(int(dropped))...)
		if version == linux.TPACKET_V3 {
			b = append(b, intValue(0)...) // how often the ring was full; not counted
		}
		return b, 0
	case key == optionName{linux.SOL_PACKET, linux.PACKET_VERSION}:
		return intValue(version), 0
	case key == optionName{linux.SOL_PACKET, linux.PACKET_RESERVE}:
		return intValue(reserve), 0
	case key == optionName{linux.SOL_PACKET, linux.PACKET_AUXDATA}:
		return boolValue(aux), 0
	case level != linux.SOL_SOCKET:
		return nil, linux.ENOPROTOOPT
	case name == linux.SO_RCVBUF:
		if buffer == 0 {
			buffer = defaultPacketBuffer
		}
		return intValue(buffer), 0
	case name == linux.SO_TIMESTAMP:
		return boolValue(times.time), 0
	case name == linux.SO_TIMESTAMPNS:
		return boolValue(times.nanoseconds), 0
	case name == linux.SO_BINDTODEVICE:
		on, _ := s.conn.Bound()
		return deviceName(on), 0
	}
	return s.socketBase.option(name)
}

// defaultPacketBuffer is the initial value of SO_RCVBUF, in bytes (net.core.rmem_default).
const defaultPacketBuffer = 212992

func (s *packetSocket) setOption(level, name int, value []byte) Errno {
	key := optionName{level, name}
	switch {
	case packetHarmless[key]:
		return s.remember(key, value)
	case level == linux.SOL_PACKET:
		return s.setPacketOption(name, value)
	case level != linux.SOL_SOCKET:
		return linux.ENOPROTOOPT
	}
	switch name {
	case linux.SO_ATTACH_FILTER, linux.SO_DETACH_FILTER:
		return s.setFilter(name, value)
	case linux.SO_TIMESTAMP, linux.SO_TIMESTAMPNS, linux.SO_RCVBUF, linux.SO_RCVBUFFORCE:
		n, errno := parseInt(value)
		if errno == 0 {
			s.setNumber(name, n)
		}
		return errno
	case linux.SO_BINDTODEVICE:
		on, errno := deviceOf(s.net, value)
		if errno == 0 {
			_, kind := s.conn.Bound()
			s.conn.Bind(on, kind)
		}
		return errno
	}
	return s.socketBase.setOption(name, value)
}

// setPacketOption sets an option of level SOL_PACKET. Memberships succeed without any effect, because
// links deliver all frames that they receive. Errors: EINVAL, ENODEV, ENOPROTOOPT.
func (s *packetSocket) setPacketOption(name int, value []byte) Errno {
	switch name {
	case linux.PACKET_ADD_MEMBERSHIP, linux.PACKET_DROP_MEMBERSHIP:
		const size = 16 // struct packet_mreq
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
		n, errno := parseInt(value)
		if errno != 0 {
			return errno
		}
		if name == linux.PACKET_IGNORE_OUTGOING {
			s.conn.IgnoreOutgoing(n != 0)
			return 0
		}
		s.mu.Lock()
		s.auxData = n != 0
		s.mu.Unlock()
		return 0
	}
	return linux.ENOPROTOOPT
}

// setRingOption sets an option that must be set before the ring exists. Errors: EINVAL, EBUSY.
func (s *packetSocket) setRingOption(name int, value []byte) Errno {
	n, errno := parseInt(value)
	if errno != 0 {
		return errno
	}
	s.mu.Lock()
	defer s.mu.Unlock()
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
func (s *packetSocket) setNumber(name, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name {
	case linux.SO_TIMESTAMP: // at most one kind of timestamp
		s.times = wantedControl{time: n != 0}
	case linux.SO_TIMESTAMPNS:
		s.times = wantedControl{nanoseconds: n != 0}
	default:
		s.buffer = max(4608, min(2*n, maxInetBuffer))
		s.conn.SetReceiveBuffer(s.buffer)
	}
}

// setFilter implements SO_ATTACH_FILTER and SO_DETACH_FILTER. Errors: EINVAL; ENOENT without a filter;
// EPERM if the filter is locked.
func (s *packetSocket) setFilter(name int, value []byte) Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept(optionName{linux.SOL_SOCKET, linux.SO_LOCK_FILTER}) != 0 {
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
	p, err := bpf.New(instructions(value))
	if err != nil {
		return linux.EINVAL
	}
	s.filter = true
	s.conn.SetFilter(p.Run)
	return 0
}
