package posix

import (
	"encoding/binary"
	"syscall"

	"loam/posix/bpf"
)

// Options of packet sockets (packet(7), linux/if_packet.h).
const (
	solPacket            = 263
	packetAddMembership  = 1
	packetDropMembership = 2
	packetRxRing         = 5
	packetStatistics     = 6
	packetCopyThreshold  = 7
	packetAuxData        = 8
	packetOrigDev        = 9
	packetVersion        = 10
	packetReserve        = 12
	packetLoss           = 14
	packetTimestamp      = 17
	packetQdiscBypass    = 20
	packetIgnoreOutgoing = 23
	soLockFilter         = 44
)

// packetHarmless are those that may be set and read back although nothing depends on them.
var packetHarmless = map[optionName]bool{
	{solPacket, packetOrigDev}:              true,
	{solPacket, packetCopyThreshold}:        true,
	{solPacket, packetLoss}:                 true,
	{solPacket, packetTimestamp}:            true,
	{solPacket, packetQdiscBypass}:          true,
	{syscall.SOL_SOCKET, soLockFilter}:      true,
	{syscall.SOL_SOCKET, syscall.SO_SNDBUF}: true,
}

func (s *packetSocket) option(level, name int) ([]byte, Errno) {
	key := optionName{level, name}
	s.mu.Lock()
	aux, times, buffer, version, reserve := s.auxData, s.times, s.buffer, s.version, s.reserve
	s.mu.Unlock()
	switch {
	case packetHarmless[key]:
		return s.recall(key), 0
	case key == optionName{solPacket, packetStatistics}: // struct tpacket_stats, tpacket_stats_v3
		frames, dropped := s.conn.TakeStats()
		b := append(intValue(int(frames)), intValue(int(dropped))...)
		if version == packetV3 {
			b = append(b, intValue(0)...) // how often the ring was full
		}
		return b, 0
	case key == optionName{solPacket, packetVersion}:
		return intValue(version), 0
	case key == optionName{solPacket, packetReserve}:
		return intValue(reserve), 0
	case key == optionName{solPacket, packetAuxData}:
		return boolValue(aux), 0
	case level != syscall.SOL_SOCKET:
		return nil, syscall.ENOPROTOOPT
	case name == syscall.SO_RCVBUF:
		if buffer == 0 {
			buffer = defaultPacketBuffer
		}
		return intValue(buffer), 0
	case name == syscall.SO_TIMESTAMP:
		return boolValue(times.time), 0
	case name == soTimestampNS:
		return boolValue(times.nanoseconds), 0
	case name == syscall.SO_BINDTODEVICE:
		on, _ := s.conn.Bound()
		return deviceName(on), 0
	}
	return s.socketBase.option(name)
}

// defaultPacketBuffer is what SO_RCVBUF says at first, in bytes (net.core.rmem_default).
const defaultPacketBuffer = 212992

func (s *packetSocket) setOption(level, name int, value []byte) Errno {
	key := optionName{level, name}
	switch {
	case packetHarmless[key]:
		return s.remember(key, value)
	case level == solPacket:
		return s.setPacketOption(name, value)
	case level != syscall.SOL_SOCKET:
		return syscall.ENOPROTOOPT
	}
	switch name {
	case syscall.SO_ATTACH_FILTER, syscall.SO_DETACH_FILTER:
		return s.setFilter(name, value)
	case syscall.SO_TIMESTAMP, soTimestampNS, syscall.SO_RCVBUF, syscall.SO_RCVBUFFORCE:
		n, errno := parseInt(value)
		if errno == 0 {
			s.setNumber(name, n)
		}
		return errno
	case syscall.SO_BINDTODEVICE:
		on, errno := deviceOf(s.net, value)
		if errno == 0 {
			_, kind := s.conn.Bound()
			s.conn.Bind(on, kind)
		}
		return errno
	}
	return s.socketBase.setOption(name, value)
}

// setPacketOption is for those of the family's own. Memberships are granted without doing
// anything: links hand on all frames that they get. Errors: EINVAL, ENODEV, ENOPROTOOPT.
func (s *packetSocket) setPacketOption(name int, value []byte) Errno {
	switch name {
	case packetAddMembership, packetDropMembership:
		const size = 16 // struct packet_mreq
		if len(value) < size {
			return syscall.EINVAL
		}
		on, errno := s.interfaceOf(int32(binary.NativeEndian.Uint32(value)))
		if errno == 0 && on == nil {
			errno = syscall.ENODEV
		}
		return errno
	case packetRxRing:
		return s.setRing(value)
	case packetVersion, packetReserve:
		return s.setRingOption(name, value)
	case packetAuxData, packetIgnoreOutgoing:
		n, errno := parseInt(value)
		if errno != 0 {
			return errno
		}
		if name == packetIgnoreOutgoing {
			s.conn.IgnoreOutgoing(n != 0)
			return 0
		}
		s.mu.Lock()
		s.auxData = n != 0
		s.mu.Unlock()
		return 0
	}
	return syscall.ENOPROTOOPT
}

// setRingOption is for what has to be set before there is a ring. Errors: EINVAL, EBUSY.
func (s *packetSocket) setRingOption(name int, value []byte) Errno {
	n, errno := parseInt(value)
	if errno != 0 {
		return errno
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ring.Load() != nil:
		return syscall.EBUSY
	case name == packetReserve && n >= 0:
		s.reserve = n
	case name == packetVersion && n >= packetV1 && n <= packetV3:
		s.version = n
	default:
		return syscall.EINVAL
	}
	return 0
}

// setNumber sets an option of level SOL_SOCKET whose value is an int.
func (s *packetSocket) setNumber(name, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name {
	case syscall.SO_TIMESTAMP: // one kind of time at most
		s.times = wantedControl{time: n != 0}
	case soTimestampNS:
		s.times = wantedControl{nanoseconds: n != 0}
	default:
		s.buffer = max(4608, min(2*n, maxInetBuffer))
		s.conn.SetReceiveBuffer(s.buffer)
	}
}

// setFilter is SO_ATTACH_FILTER and SO_DETACH_FILTER. Errors: EINVAL, ENOENT, and EPERM where
// the filter was locked.
func (s *packetSocket) setFilter(name int, value []byte) Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept(optionName{syscall.SOL_SOCKET, soLockFilter}) != 0 {
		return syscall.EPERM
	}
	if name == syscall.SO_DETACH_FILTER {
		if !s.filter {
			return syscall.ENOENT
		}
		s.filter = false
		s.conn.SetFilter(nil)
		return 0
	}
	p, err := bpf.New(instructions(value))
	if err != nil {
		return syscall.EINVAL
	}
	s.filter = true
	s.conn.SetFilter(p.Run)
	return 0
}
