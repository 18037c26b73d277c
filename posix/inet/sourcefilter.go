package inet

import (
	"encoding/binary"
	"net/netip"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/netdevice"
	"loam/posix/socket"
	"loam/stack"
)

// Source filters of multicast groups (RFC 3678, ip(7)). The option values name a group, an interface,
// and sources.

// Sizes of the structures and offsets of their fields, in bytes.
const (
	sizeMsfilter       = 16  // struct ip_msfilter before the sources: group, interface, mode, number of sources
	sizeGroupFilter    = 144 // struct group_filter before the sources: struct group_req, mode, number of sources
	groupAt, sourcesAt = 8, 136
)

// sourceOptions maps each option that adds or removes a source of a filter to the method of the stack.
var sourceOptions = map[socket.OptionName]func(m *stack.Memberships, group, source netip.Addr, on *stack.Interface) error{
	{Level: linux.IPPROTO_IP, Name: linux.IP_ADD_SOURCE_MEMBERSHIP}:   (*stack.Memberships).JoinSourceSpecificGroup,
	{Level: linux.IPPROTO_IP, Name: linux.IP_DROP_SOURCE_MEMBERSHIP}:  (*stack.Memberships).LeaveSourceSpecificGroup,
	{Level: linux.IPPROTO_IP, Name: linux.IP_BLOCK_SOURCE}:            (*stack.Memberships).ExcludeSourceSpecificGroup,
	{Level: linux.IPPROTO_IP, Name: linux.IP_UNBLOCK_SOURCE}:          (*stack.Memberships).IncludeSourceSpecificGroup,
	{Level: linux.IPPROTO_IP, Name: linux.MCAST_JOIN_SOURCE_GROUP}:    (*stack.Memberships).JoinSourceSpecificGroup,
	{Level: linux.IPPROTO_IP, Name: linux.MCAST_LEAVE_SOURCE_GROUP}:   (*stack.Memberships).LeaveSourceSpecificGroup,
	{Level: linux.IPPROTO_IP, Name: linux.MCAST_BLOCK_SOURCE}:         (*stack.Memberships).ExcludeSourceSpecificGroup,
	{Level: linux.IPPROTO_IP, Name: linux.MCAST_UNBLOCK_SOURCE}:       (*stack.Memberships).IncludeSourceSpecificGroup,
	{Level: linux.IPPROTO_IPV6, Name: linux.MCAST_JOIN_SOURCE_GROUP}:  (*stack.Memberships).JoinSourceSpecificGroup,
	{Level: linux.IPPROTO_IPV6, Name: linux.MCAST_LEAVE_SOURCE_GROUP}: (*stack.Memberships).LeaveSourceSpecificGroup,
	{Level: linux.IPPROTO_IPV6, Name: linux.MCAST_BLOCK_SOURCE}:       (*stack.Memberships).ExcludeSourceSpecificGroup,
	{Level: linux.IPPROTO_IPV6, Name: linux.MCAST_UNBLOCK_SOURCE}:     (*stack.Memberships).IncludeSourceSpecificGroup,
}

// sourceOption sets an option of sourceOptions.
func (s *UDPSocket) sourceOption(key socket.OptionName, value []byte) linux.Errno {
	m, source, errno := s.sourceRequest(key, value)
	if errno != 0 {
		return errno
	}
	return file.ToErrno(sourceOptions[key](s.opts.Groups, m.group, source, m.on))
}

// sourceRequest parses a struct ip_mreq_source or group_source_req. Errors: EINVAL, ENODEV;
// EADDRNOTAVAIL for addresses of another family.
func (s *UDPSocket) sourceRequest(key socket.OptionName, value []byte) (m membership, source netip.Addr, errno linux.Errno) {
	if key.Name < linux.MCAST_JOIN_GROUP {
		if len(value) != linux.SizeofIPMreqSource {
			return m, source, linux.EINVAL
		}
		m, errno = s.memberAt([4]byte(value), [4]byte(value[4:]), 0)
		return m, netip.AddrFrom4([4]byte(value[8:])), errno
	}
	if len(value) < linux.SizeofGroupSourceReq || len(value) > linux.SizeofGroupSourceReq && key.Level == linux.IPPROTO_IP {
		return m, source, linux.EINVAL
	}
	group, source := storedAddr(key.Level, value[groupAt:]), storedAddr(key.Level, value[sourcesAt:])
	if !group.IsValid() || !source.IsValid() {
		return m, source, linux.EADDRNOTAVAIL
	}
	m, errno = s.memberOn(group, int(binary.NativeEndian.Uint32(value)))
	return m, source, errno
}

// storedAddr returns the address in a struct sockaddr_storage. It returns the zero Addr if the address
// is not of the level's family.
func storedAddr(level int, b []byte) netip.Addr {
	a, errno := socket.ParseAddress(b[:linux.SizeofSockaddrStorage])
	family := uint16(linux.AF_INET)
	if level == linux.IPPROTO_IPV6 {
		family = linux.AF_INET6
	}
	if errno != 0 || a.Family != family {
		return netip.Addr{}
	}
	return a.IP.Addr().WithZone("")
}

// memberOn returns the membership in a group on the interface with an index. For index 0 the routing table selects the
// interface. Errors: EINVAL, ENODEV.
func (s *UDPSocket) memberOn(group netip.Addr, index int) (membership, linux.Errno) {
	m := membership{group: group}
	if !group.IsMulticast() {
		return m, linux.EINVAL
	}
	if index == 0 {
		return m, 0
	}
	if m.on = netdevice.ByIndex(s.net, index); m.on == nil {
		return m, linux.ENODEV
	}
	return m, 0
}

// IsFilterOption reports whether an option sets a whole filter: IP_MSFILTER or MCAST_MSFILTER.
func IsFilterOption(level, name int) bool {
	return level == linux.IPPROTO_IP && name == linux.IP_MSFILTER ||
		(level == linux.IPPROTO_IP || level == linux.IPPROTO_IPV6) && name == linux.MCAST_MSFILTER
}

// filterRequest is a struct ip_msfilter or group_filter: a group, an interface and a filter.
type filterRequest struct {
	level  int
	header []byte // the structure up to the list of sources
	size   int    // size of one source, in bytes
	mode   uint32
	count  uint32
}

// readFilterRequest parses a request without its sources. Errors: EINVAL.
func readFilterRequest(level, name int, value []byte) (filterRequest, linux.Errno) {
	r := filterRequest{level: level, size: linux.SizeofSockaddrStorage}
	most := sizeGroupFilter
	if name == linux.IP_MSFILTER {
		r.size, most = 4, sizeMsfilter
	}
	if len(value) < most {
		return r, linux.EINVAL
	}
	r.header = value[:most]
	r.mode, r.count = binary.NativeEndian.Uint32(value[most-8:]), binary.NativeEndian.Uint32(value[most-4:])
	return r, 0
}

// source decodes the source address at the start of b. It returns the zero Addr if the address is of another family.
func (r *filterRequest) source(b []byte) netip.Addr {
	if r.size == 4 {
		return netip.AddrFrom4([4]byte(b))
	}
	return storedAddr(r.level, b)
}

// filterMember returns the membership to which a request applies. Errors: EINVAL, ENODEV; the errno other if the group is of
// another family.
func (s *UDPSocket) filterMember(r *filterRequest, other linux.Errno) (membership, linux.Errno) {
	if r.size == 4 {
		return s.memberAt([4]byte(r.header), [4]byte(r.header[4:]), 0)
	}
	group := storedAddr(r.level, r.header[groupAt:])
	if !group.IsValid() {
		return membership{}, other
	}
	return s.memberOn(group, int(binary.NativeEndian.Uint32(r.header)))
}

// setGroupFilter implements setting IP_MSFILTER and MCAST_MSFILTER. Errors: EINVAL, EADDRNOTAVAIL,
// ENODEV; ENOBUFS for more than 10 IPv4 sources or 64 IPv6 sources.
func (s *UDPSocket) setGroupFilter(level, name int, value []byte) linux.Errno {
	r, errno := readFilterRequest(level, name, value)
	if errno != 0 {
		return errno
	}
	most, other := uint32(10), linux.EADDRNOTAVAIL
	if level == linux.IPPROTO_IPV6 {
		most, other = 64, linux.EINVAL
	}
	list := value[len(r.header):]
	switch {
	case r.count > most:
		return linux.ENOBUFS
	case len(list) < int(r.count)*r.size:
		return linux.EINVAL
	}
	f := stack.SourceFilter{Exclude: r.mode != linux.MCAST_INCLUDE}
	for range r.count {
		source := r.source(list)
		if !source.IsValid() {
			return linux.EADDRNOTAVAIL
		}
		f.Sources = append(f.Sources, source)
		list = list[r.size:]
	}
	m, errno := s.filterMember(&r, other)
	switch {
	case errno != 0 && errno != linux.ENODEV:
		return errno
	case r.mode > linux.MCAST_INCLUDE:
		return linux.EINVAL
	case errno != 0:
		return errno
	}
	return file.ToErrno(s.opts.Groups.SetSourceFilter(m.group, m.on, f))
}

// OptionFor implements getsockopt of IP_MSFILTER and MCAST_MSFILTER. request is the program's buffer, which contains the
// group and the maximum number of sources. The result has at most that number of sources, and the total number. Errors:
// EINVAL, ENODEV; EADDRNOTAVAIL if the socket has not joined the group; ENOPROTOOPT for another option.
func (s *UDPSocket) OptionFor(level, name int, request []byte) ([]byte, linux.Errno) {
	if !IsFilterOption(level, name) {
		return nil, linux.ENOPROTOOPT
	}
	r, errno := readFilterRequest(level, name, request)
	if errno != 0 {
		return nil, errno
	}
	other := linux.EADDRNOTAVAIL
	if level == linux.IPPROTO_IP {
		other = linux.EINVAL
	}
	m, errno := s.filterMember(&r, other)
	if r.size != 4 && (errno == linux.ENODEV || errno == 0 && m.on == nil) {
		errno = linux.EADDRNOTAVAIL
	}
	if errno != 0 {
		return nil, errno
	}
	f, err := s.opts.Groups.SourceFilter(m.group, m.on)
	if err != nil {
		return nil, file.ToErrno(err)
	}
	return r.answer(f), 0
}

// answer returns the header of the request followed by the filter f.
func (r *filterRequest) answer(f stack.SourceFilter) []byte {
	b := append([]byte(nil), r.header[:len(r.header)-8]...)
	mode := uint32(linux.MCAST_INCLUDE)
	if f.Exclude {
		mode = 0
	}
	b = binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(b, mode), uint32(len(f.Sources)))
	for _, source := range f.Sources[:min(len(f.Sources), int(r.count))] {
		if r.size == 4 {
			b = append(b, source.AsSlice()...)
			continue
		}
		a := socket.Address{Family: linux.AF_INET, IP: netip.AddrPortFrom(source, 0)}
		if source.Is6() {
			a.Family = linux.AF_INET6
		}
		b = append(b, append(a.Append(nil), make([]byte, linux.SizeofSockaddrStorage)...)[:linux.SizeofSockaddrStorage]...)
	}
	return b
}
