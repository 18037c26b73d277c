package inet

import (
	"loam/abi/linux"
	"loam/posix/socket"
)

// Options about multicast groups of TCP sockets. A TCP socket cannot join a group, so the options have no effect. As on Linux,
// some can be set, and most can be read.

// tcpGroupOptions maps an option that can be read to its default value.
var tcpGroupOptions = map[socket.OptionName]int{
	{Level: linux.IPPROTO_IP, Name: linux.IP_MULTICAST_TTL}:      1,
	{Level: linux.IPPROTO_IP, Name: linux.IP_MULTICAST_IF}:       0,
	{Level: linux.IPPROTO_IP, Name: linux.IP_MULTICAST_LOOP}:     1,
	{Level: linux.IPPROTO_IP, Name: linux.IP_MULTICAST_ALL}:      1,
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_MULTICAST_HOPS}: 1,
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_MULTICAST_IF}:   0,
	{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_MULTICAST_LOOP}: 1,
}

// groupOption returns the value of an option about groups. ok is false for another option.
func (s *TCPSocket) groupOption(key socket.OptionName) (value []byte, ok bool) {
	n, ok := tcpGroupOptions[key]
	if !ok {
		return nil, false
	}
	if changed, set := s.Remembers(key); set {
		n = changed
	} else if key.Level == linux.IPPROTO_IP && key.Name == linux.IP_MULTICAST_ALL && s.IsInet6() {
		n = 0
	}
	return socket.IntValue(n), true
}

// setGroupOption sets an option about groups. ok is false for another option. Errors: EINVAL, EPROTO, ENOPROTOOPT.
func (s *TCPSocket) setGroupOption(key socket.OptionName, value []byte) (errno linux.Errno, ok bool) {
	switch key {
	case socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_MULTICAST_TTL}, socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_MULTICAST_IF}:
		return linux.EINVAL, true
	case socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_ADD_MEMBERSHIP}, socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_DROP_MEMBERSHIP},
		socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_ADD_MEMBERSHIP}, socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_DROP_MEMBERSHIP}:
		return linux.EPROTO, true
	case socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_MULTICAST_LOOP}, socket.OptionName{Level: linux.IPPROTO_IP, Name: linux.IP_MULTICAST_ALL},
		socket.OptionName{Level: linux.IPPROTO_IPV6, Name: linux.IPV6_MULTICAST_LOOP}:
		n, errno := socket.ParseInt(value)
		if errno != 0 || n&^1 != 0 && key.Name != linux.IP_MULTICAST_LOOP {
			return linux.EINVAL, true
		}
		return s.Remember(key, socket.BoolValue(n != 0)), true
	}
	return 0, false
}
