package posix

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"loam/stack"
)

// Filters of sources of multicast groups (RFC 3678, ip(7)): options whose values name a group,
// an interface, and sources.

// Options of RFC 3678 (linux/in.h), at the levels of IPv4 and IPv6.
const (
	mcastJoinGroup        = 42
	mcastBlockSource      = 43
	mcastUnblockSource    = 44
	mcastLeaveGroup       = 45
	mcastJoinSourceGroup  = 46
	mcastLeaveSourceGroup = 47
	mcastFilter           = 48
)

// Sizes of their structures in bytes, and where the fields of those are.
const (
	sizeGroupReq       = 136 // struct group_req: an index, and the group from its eighth byte on
	sizeSourceReq      = 264 // struct group_source_req: the same and the source
	sizeStorage        = 128 // struct sockaddr_storage
	sizeMreqSource     = 12  // struct ip_mreq_source: group, interface, source
	sizeMsfilter       = 16  // struct ip_msfilter: group, interface, mode, number of sources
	sizeGroupFilter    = 144 // struct group_filter: as group_req, then mode, number of sources
	groupAt, sourcesAt = 8, 136
)

// modeInclude is MCAST_INCLUDE; MCAST_EXCLUDE is 0.
const modeInclude = 1

// sourceOptions are those that add one source to a filter or remove it.
var sourceOptions = map[optionName]func(m *stack.Memberships, group, source netip.Addr, on *stack.Interface) error{
	{syscall.IPPROTO_IP, syscall.IP_ADD_SOURCE_MEMBERSHIP}:  (*stack.Memberships).JoinSourceSpecificGroup,
	{syscall.IPPROTO_IP, syscall.IP_DROP_SOURCE_MEMBERSHIP}: (*stack.Memberships).LeaveSourceSpecificGroup,
	{syscall.IPPROTO_IP, syscall.IP_BLOCK_SOURCE}:           (*stack.Memberships).ExcludeSourceSpecificGroup,
	{syscall.IPPROTO_IP, syscall.IP_UNBLOCK_SOURCE}:         (*stack.Memberships).IncludeSourceSpecificGroup,
	{syscall.IPPROTO_IP, mcastJoinSourceGroup}:              (*stack.Memberships).JoinSourceSpecificGroup,
	{syscall.IPPROTO_IP, mcastLeaveSourceGroup}:             (*stack.Memberships).LeaveSourceSpecificGroup,
	{syscall.IPPROTO_IP, mcastBlockSource}:                  (*stack.Memberships).ExcludeSourceSpecificGroup,
	{syscall.IPPROTO_IP, mcastUnblockSource}:                (*stack.Memberships).IncludeSourceSpecificGroup,
	{syscall.IPPROTO_IPV6, mcastJoinSourceGroup}:            (*stack.Memberships).JoinSourceSpecificGroup,
	{syscall.IPPROTO_IPV6, mcastLeaveSourceGroup}:           (*stack.Memberships).LeaveSourceSpecificGroup,
	{syscall.IPPROTO_IPV6, mcastBlockSource}:                (*stack.Memberships).ExcludeSourceSpecificGroup,
	{syscall.IPPROTO_IPV6, mcastUnblockSource}:              (*stack.Memberships).IncludeSourceSpecificGroup,
}

// sourceOption is one of these.
func (s *udpSocket) sourceOption(key optionName, value []byte) Errno {
	m, source, errno := s.sourceRequest(key, value)
	if errno != 0 {
		return errno
	}
	return toErrno(sourceOptions[key](s.opts.Groups, m.group, source, m.on))
}

// sourceRequest reads struct ip_mreq_source or group_source_req. Errors: EINVAL,
// EADDRNOTAVAIL for addresses of another family, ENODEV.
func (s *udpSocket) sourceRequest(key optionName, value []byte) (m membership, source netip.Addr, errno Errno) {
	if key.name < mcastJoinGroup {
		if len(value) != sizeMreqSource {
			return m, source, syscall.EINVAL
		}
		m, errno = s.memberAt([4]byte(value), [4]byte(value[4:]), 0)
		return m, netip.AddrFrom4([4]byte(value[8:])), errno
	}
	if len(value) < sizeSourceReq || len(value) > sizeSourceReq && key.level == syscall.IPPROTO_IP {
		return m, source, syscall.EINVAL
	}
	group, source := storedAddr(key.level, value[groupAt:]), storedAddr(key.level, value[sourcesAt:])
	if !group.IsValid() || !source.IsValid() {
		return m, source, syscall.EADDRNOTAVAIL
	}
	m, errno = s.memberOn(group, int(binary.NativeEndian.Uint32(value)))
	return m, source, errno
}

// storedAddr is the address in a struct sockaddr_storage, the zero Addr if it is not of the
// level's family.
func storedAddr(level int, b []byte) netip.Addr {
	a, errno := ParseAddress(b[:sizeStorage])
	family := uint16(syscall.AF_INET)
	if level == syscall.IPPROTO_IPV6 {
		family = syscall.AF_INET6
	}
	if errno != 0 || a.Family != family {
		return netip.Addr{}
	}
	return a.IP.Addr().WithZone("")
}

// memberOn is a group on the interface of an index; of 0 on the one that a route leads to.
// Errors: EINVAL, ENODEV.
func (s *udpSocket) memberOn(group netip.Addr, index int) (membership, Errno) {
	m := membership{group: group}
	if !group.IsMulticast() {
		return m, syscall.EINVAL
	}
	if index == 0 {
		return m, 0
	}
	if m.on = interfaceByIndex(s.net, index); m.on == nil {
		return m, syscall.ENODEV
	}
	return m, 0
}

// isFilterOption reports whether an option is about a whole filter: IP_MSFILTER or
// MCAST_MSFILTER.
func isFilterOption(level, name int) bool {
	return level == syscall.IPPROTO_IP && name == syscall.IP_MSFILTER ||
		(level == syscall.IPPROTO_IP || level == syscall.IPPROTO_IPV6) && name == mcastFilter
}

// filterRequest is struct ip_msfilter or group_filter: a group on an interface, and a filter.
type filterRequest struct {
	level  int
	header []byte // in front of the sources
	size   int    // of a source
	mode   uint32
	count  uint32
}

// readFilterRequest reads all but the sources. Errors: EINVAL.
func readFilterRequest(level, name int, value []byte) (filterRequest, Errno) {
	r := filterRequest{level: level, size: sizeStorage}
	most := sizeGroupFilter
	if name == syscall.IP_MSFILTER {
		r.size, most = 4, sizeMsfilter
	}
	if len(value) < most {
		return r, syscall.EINVAL
	}
	r.header = value[:most]
	r.mode, r.count = binary.NativeEndian.Uint32(value[most-8:]), binary.NativeEndian.Uint32(value[most-4:])
	return r, 0
}

// source reads the source at the front of b; the zero Addr if it is of another family.
func (r *filterRequest) source(b []byte) netip.Addr {
	if r.size == 4 {
		return netip.AddrFrom4([4]byte(b))
	}
	return storedAddr(r.level, b)
}

// member is the group. Errors: EINVAL, ENODEV, and other for a group of another family.
func (s *udpSocket) filterMember(r *filterRequest, other Errno) (membership, Errno) {
	if r.size == 4 {
		return s.memberAt([4]byte(r.header), [4]byte(r.header[4:]), 0)
	}
	group := storedAddr(r.level, r.header[groupAt:])
	if !group.IsValid() {
		return membership{}, other
	}
	return s.memberOn(group, int(binary.NativeEndian.Uint32(r.header)))
}

// setGroupFilter is IP_MSFILTER and MCAST_MSFILTER. Errors: EINVAL, ENOBUFS for more than 10
// sources of IPv4 or 64 of IPv6, EADDRNOTAVAIL, ENODEV.
func (s *udpSocket) setGroupFilter(level, name int, value []byte) Errno {
	r, errno := readFilterRequest(level, name, value)
	if errno != 0 {
		return errno
	}
	most, other := uint32(10), syscall.EADDRNOTAVAIL
	if level == syscall.IPPROTO_IPV6 {
		most, other = 64, syscall.EINVAL
	}
	list := value[len(r.header):]
	switch {
	case r.count > most:
		return syscall.ENOBUFS
	case len(list) < int(r.count)*r.size:
		return syscall.EINVAL
	}
	f := stack.SourceFilter{Exclude: r.mode != modeInclude}
	for range r.count {
		source := r.source(list)
		if !source.IsValid() {
			return syscall.EADDRNOTAVAIL
		}
		f.Sources = append(f.Sources, source)
		list = list[r.size:]
	}
	m, errno := s.filterMember(&r, other)
	switch {
	case errno != 0 && errno != syscall.ENODEV:
		return errno
	case r.mode > modeInclude:
		return syscall.EINVAL
	case errno != 0:
		return errno
	}
	return toErrno(s.opts.Groups.SetSourceFilter(m.group, m.on, f))
}

// groupFilter is getsockopt of IP_MSFILTER and MCAST_MSFILTER, of what the program asks with:
// as many sources as that has room for, and how many there are. Errors: EINVAL, EADDRNOTAVAIL
// when the group is not heard, ENODEV.
func (s *udpSocket) groupFilter(level, name int, request []byte) ([]byte, Errno) {
	r, errno := readFilterRequest(level, name, request)
	if errno != 0 {
		return nil, errno
	}
	other := syscall.EADDRNOTAVAIL
	if level == syscall.IPPROTO_IP {
		other = syscall.EINVAL
	}
	m, errno := s.filterMember(&r, other)
	if r.size != 4 && (errno == syscall.ENODEV || errno == 0 && m.on == nil) {
		errno = syscall.EADDRNOTAVAIL
	}
	if errno != 0 {
		return nil, errno
	}
	f, err := s.opts.Groups.SourceFilter(m.group, m.on)
	if err != nil {
		return nil, toErrno(err)
	}
	return r.answer(f), 0
}

// answer is the request with a filter.
func (r *filterRequest) answer(f stack.SourceFilter) []byte {
	b := append([]byte(nil), r.header[:len(r.header)-8]...)
	mode := uint32(modeInclude)
	if f.Exclude {
		mode = 0
	}
	b = binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(b, mode), uint32(len(f.Sources)))
	for _, source := range f.Sources[:min(len(f.Sources), int(r.count))] {
		if r.size == 4 {
			b = append(b, source.AsSlice()...)
			continue
		}
		a := Address{Family: syscall.AF_INET, IP: netip.AddrPortFrom(source, 0)}
		if source.Is6() {
			a.Family = syscall.AF_INET6
		}
		b = append(b, append(a.Append(nil), make([]byte, sizeStorage)...)[:sizeStorage]...)
	}
	return b
}
