package posix

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"loam/abi/linux"
	"loam/posix/socket"
)

// Source filters. Each step runs on Loam and on the loopback interface of Linux, and must return the
// same errno on both.

// storage encodes a struct sockaddr_storage.
func storage(addr string) []byte {
	a := Address{Family: linux.AF_INET, IP: netip.AddrPortFrom(netip.MustParseAddr(addr), 0)}
	if a.IP.Addr().Is6() {
		a.Family = linux.AF_INET6
	}
	return append(a.Append(nil), make([]byte, linux.SizeofSockaddrStorage)...)[:linux.SizeofSockaddrStorage]
}

// sourceReq encodes a struct group_source_req.
func sourceReq(group, source string, index int) []byte {
	return slices.Concat(binary.NativeEndian.AppendUint64(nil, uint64(index)), storage(group), storage(source))
}

// groupFilterOf encodes a struct group_filter; count is its number of sources.
func groupFilterOf(group string, index, mode, count int, sources ...string) []byte {
	b := append(binary.NativeEndian.AppendUint64(nil, uint64(index)), storage(group)...)
	b = binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(b, uint32(mode)), uint32(count))
	for _, source := range sources {
		b = append(b, storage(source)...)
	}
	return b
}

// mreqSource encodes a struct ip_mreq_source, and msfilter a struct ip_msfilter.
func mreqSource(group, at, source string) []byte {
	return slices.Concat(mreqn(group, at, 0), netip.MustParseAddr(source).AsSlice())
}

func msfilter(group, at string, mode, count int, sources ...string) []byte {
	b := binary.NativeEndian.AppendUint32(mreqn(group, at, 0), uint32(mode))
	b = binary.NativeEndian.AppendUint32(b, uint32(count))
	for _, source := range sources {
		b = append(b, netip.MustParseAddr(source).AsSlice()...)
	}
	return b
}

// optionSocket is a socket of Loam or of Linux.
type optionSocket interface {
	set(level, name int, value []byte) Errno
	get(level, name int, request []byte) ([]byte, Errno)
}

type loamSocket struct {
	p  *Process
	fd int
}

func (s loamSocket) set(level, name int, value []byte) Errno {
	return s.p.SetSockOpt(s.fd, level, name, value)
}

func (s loamSocket) get(level, name int, request []byte) ([]byte, Errno) {
	return s.p.GetSockOptBy(s.fd, level, name, request)
}

// bothSockets runs a script with a socket of Loam and one of Linux.
func bothSockets(t *testing.T, domain int, script func(t *testing.T, s optionSocket)) {
	t.Run("Loam", func(t *testing.T) {
		p := process(t)
		script(t, loamSocket{p, fd(t)(p.Socket(domain, linux.SOCK_DGRAM, 0))})
	})
	t.Run("Linux", func(t *testing.T) {
		s, err := syscall.Socket(domain, linux.SOCK_DGRAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(s)
		script(t, linuxSocket(s))
	})
}

// step sets an option and states the expected errno.
type step struct {
	what  string
	name  int
	value []byte
	want  Errno
}

func runSteps(t *testing.T, s optionSocket, level int, steps []step) {
	t.Helper()
	for _, c := range steps {
		wantErrno(t, s.set(level, c.name, c.value), c.want, c.what)
	}
}

// wantFilter compares a filter read by IP_MSFILTER or MCAST_MSFILTER.
func wantFilter(t *testing.T, what string, s optionSocket, level, name int, request, want []byte) {
	t.Helper()
	got, errno := s.get(level, name, request)
	if errno != 0 || !slices.Equal(got, want) {
		t.Errorf("%s: errno %v\n%x\nwant\n%x", what, errno, got, want)
	}
}

func TestSourceMembership(t *testing.T) {
	const (
		group, lo      = "239.1.2.3", "127.0.0.1"
		first, second  = "10.0.0.1", "10.0.0.2"
		add, drop      = linux.IP_ADD_SOURCE_MEMBERSHIP, linux.IP_DROP_SOURCE_MEMBERSHIP
		block, unblock = linux.IP_BLOCK_SOURCE, linux.IP_UNBLOCK_SOURCE
		join, leave    = linux.IP_ADD_MEMBERSHIP, linux.IP_DROP_MEMBERSHIP
		filter         = linux.IP_MSFILTER
		in, ex         = linux.MCAST_INCLUDE, 0
	)
	one, two := mreqSource(group, lo, first), mreqSource(group, lo, second)
	var ten []step
	for n := range 10 {
		ten = append(ten, step{"ten sources", add, mreqSource(group, lo, fmt.Sprint("10.0.1.", n)), 0})
	}
	bothSockets(t, linux.AF_INET, func(t *testing.T, s optionSocket) {
		runSteps(t, s, linux.IPPROTO_IP, []step{
			{"too short", add, one[:11], linux.EINVAL},
			{"too long", add, append(slices.Clone(one), 0), linux.EINVAL},
			{"no group", add, mreqSource(first, lo, first), linux.EINVAL},
			{"another's address", add, mreqSource(group, "192.0.2.9", first), linux.ENODEV},
			{"dropping before joining", drop, one, linux.EINVAL},
			{"blocking before joining", block, one, linux.EINVAL},
			{"unblocking before joining", unblock, one, linux.EINVAL},
			{"a filter before joining", filter, msfilter(group, lo, ex, 0), linux.EINVAL},
			{"leaving by a filter before joining", filter, msfilter(group, lo, in, 0), linux.EADDRNOTAVAIL},
			{"a source", add, one, 0},
			{"the same", add, one, linux.EADDRNOTAVAIL},
			{"another", add, two, 0},
			{"blocking one", block, two, linux.EINVAL},
			{"dropping an unknown one", drop, mreqSource(group, lo, "10.0.0.3"), linux.EADDRNOTAVAIL},
			{"joining all", join, mreqn(group, lo, 0), linux.EADDRINUSE},
		})
		wantFilter(t, "how many", s, linux.IPPROTO_IP, filter, msfilter(group, lo, 0, 0), msfilter(group, lo, in, 2))
		wantFilter(t, "one of two", s, linux.IPPROTO_IP, filter, msfilter(group, lo, 0, 1, "0.0.0.0"), msfilter(group, lo, in, 2, first))
		wantFilter(t, "all", s, linux.IPPROTO_IP, linux.MCAST_MSFILTER, groupFilterOf(group, 1, 0, 2, "0.0.0.0", "0.0.0.0"), groupFilterOf(group, 1, in, 2, first, second))
		runSteps(t, s, linux.IPPROTO_IP, append([]step{
			{"leaving", leave, mreqn(group, lo, 0), 0},
			{"a source again", add, one, 0},
			{"dropping the last one", drop, one, 0},
			{"has left", leave, mreqn(group, lo, 0), linux.EADDRNOTAVAIL},
		}, ten...))
		runSteps(t, s, linux.IPPROTO_IP, []step{
			{"and one more", add, one, linux.ENOBUFS},
			{"leaving all", filter, msfilter(group, lo, in, 0), 0},
			{"joining all", join, mreqn(group, lo, 0), 0},
			{"blocking", block, one, 0},
			{"twice", block, one, linux.EADDRNOTAVAIL},
			{"adding", add, two, linux.EINVAL},
			{"dropping", drop, one, linux.EINVAL},
			{"unblocking", unblock, one, 0},
			{"twice", unblock, one, linux.EADDRNOTAVAIL},
			{"adding where one was blocked", add, two, linux.EINVAL},
			{"no such mode", filter, msfilter(group, lo, 2, 0), linux.EINVAL},
			{"half a filter", filter, msfilter(group, lo, ex, 0)[:15], linux.EINVAL},
			{"fewer than said", filter, msfilter(group, lo, ex, 2, first), linux.EINVAL},
			{"too many", filter, msfilter(group, lo, ex, 11, first), linux.ENOBUFS},
			{"of no group", filter, msfilter(first, lo, ex, 0), linux.EINVAL},
			{"at another's address", filter, msfilter(group, "192.0.2.9", ex, 0), linux.ENODEV},
			{"a filter", filter, msfilter(group, lo, in, 2, second, first), 0},
		})
		wantFilter(t, "in the order that was given", s, linux.IPPROTO_IP, filter,
			msfilter(group, lo, 0, 9, make4(9)...), msfilter(group, lo, in, 2, second, first))
		runSteps(t, s, linux.IPPROTO_IP, []step{
			{"one of nothing", filter, msfilter(group, lo, ex, 0), 0},
			{"may change its mode", add, one, 0},
		})
		for _, request := range [][]byte{msfilter(group, lo, 0, 0)[:15], msfilter(first, lo, 0, 0)} {
			_, errno := s.get(linux.IPPROTO_IP, filter, request)
			wantErrno(t, errno, linux.EINVAL, "asking badly")
		}
		_, errno := s.get(linux.IPPROTO_IP, filter, msfilter("239.1.2.4", lo, 0, 0))
		wantErrno(t, errno, linux.EADDRNOTAVAIL, "asking about a group that is not heard")
	})
}

// make4 returns n unspecified addresses.
func make4(n int) []string { return slices.Repeat([]string{"0.0.0.0"}, n) }

func TestGroupSource(t *testing.T) {
	for _, c := range []struct {
		domain, level, most  int
		group, other, source string
		wrong                Errno // expected errno of joining a group of the other address family
	}{
		{linux.AF_INET, linux.IPPROTO_IP, 10, "239.1.2.3", "ff02::114", "10.0.0.%d", linux.EINVAL},
		{linux.AF_INET6, linux.IPPROTO_IPV6, 64, "ff02::114", "239.1.2.3", "2001:db8::%x", linux.EADDRNOTAVAIL},
	} {
		source := func(n int) string { return fmt.Sprintf(c.source, n) }
		request := func(n int) []byte { return sourceReq(c.group, source(n), 1) }
		bothSockets(t, c.domain, func(t *testing.T, s optionSocket) {
			runSteps(t, s, c.level, []step{
				{"too short", linux.MCAST_JOIN_SOURCE_GROUP, request(1)[:263], linux.EINVAL},
				{"a group of the other family", linux.MCAST_JOIN_SOURCE_GROUP, sourceReq(c.other, source(1), 1), linux.EADDRNOTAVAIL},
				{"a source of the other family", linux.MCAST_JOIN_SOURCE_GROUP, sourceReq(c.group, c.other, 1), linux.EADDRNOTAVAIL},
				{"no group", linux.MCAST_JOIN_SOURCE_GROUP, sourceReq(source(1), source(1), 1), linux.EINVAL},
				{"no interface", linux.MCAST_JOIN_SOURCE_GROUP, sourceReq(c.group, source(1), 77777), linux.ENODEV},
				{"joining the other family", linux.MCAST_JOIN_GROUP, groupReq(c.other, 1), c.wrong},
				{"leaving before joining", linux.MCAST_LEAVE_SOURCE_GROUP, request(1), linux.EINVAL},
				{"on no interface", linux.MCAST_LEAVE_SOURCE_GROUP, sourceReq(c.group, source(1), 77777), linux.ENODEV},
				{"blocking before joining", linux.MCAST_BLOCK_SOURCE, request(1), linux.EINVAL},
				{"a filter before joining", linux.MCAST_MSFILTER, groupFilterOf(c.group, 1, 0, 0), linux.EINVAL},
				{"leaving by a filter before joining", linux.MCAST_MSFILTER, groupFilterOf(c.group, 1, linux.MCAST_INCLUDE, 0), linux.EADDRNOTAVAIL},
				{"a source", linux.MCAST_JOIN_SOURCE_GROUP, request(1), 0},
				{"the same", linux.MCAST_JOIN_SOURCE_GROUP, request(1), linux.EADDRNOTAVAIL},
				{"blocking another", linux.MCAST_BLOCK_SOURCE, request(2), linux.EINVAL},
				{"leaving another", linux.MCAST_LEAVE_SOURCE_GROUP, request(2), linux.EADDRNOTAVAIL},
				{"joining all", linux.MCAST_JOIN_GROUP, groupReq(c.group, 1), linux.EADDRINUSE},
				{"leaving the last one", linux.MCAST_LEAVE_SOURCE_GROUP, request(1), 0},
				{"has left", linux.MCAST_LEAVE_GROUP, groupReq(c.group, 1), linux.EADDRNOTAVAIL},
			})
			for n := range c.most {
				wantErrno(t, s.set(c.level, linux.MCAST_JOIN_SOURCE_GROUP, request(n+1)), 0, "many sources")
			}
			runSteps(t, s, c.level, []step{
				{"and one more", linux.MCAST_JOIN_SOURCE_GROUP, request(100), linux.ENOBUFS},
				{"leaving all", linux.MCAST_LEAVE_GROUP, groupReq(c.group, 1), 0},
				{"joining all", linux.MCAST_JOIN_GROUP, groupReq(c.group, 1), 0},
				{"blocking", linux.MCAST_BLOCK_SOURCE, request(1), 0},
				{"twice", linux.MCAST_BLOCK_SOURCE, request(1), linux.EADDRNOTAVAIL},
				{"hearing another", linux.MCAST_JOIN_SOURCE_GROUP, request(2), linux.EINVAL},
				{"unblocking", linux.MCAST_UNBLOCK_SOURCE, request(1), 0},
				{"twice", linux.MCAST_UNBLOCK_SOURCE, request(1), linux.EADDRNOTAVAIL},
				{"half a filter", linux.MCAST_MSFILTER, groupFilterOf(c.group, 1, 0, 0)[:143], linux.EINVAL},
				{"no such mode", linux.MCAST_MSFILTER, groupFilterOf(c.group, 1, 2, 0), linux.EINVAL},
				{"fewer than said", linux.MCAST_MSFILTER, groupFilterOf(c.group, 1, 0, 2, source(1)), linux.EINVAL},
				{"too many", linux.MCAST_MSFILTER, groupFilterOf(c.group, 1, 0, c.most+1, source(1)), linux.ENOBUFS},
				{"on no interface", linux.MCAST_MSFILTER, groupFilterOf(c.group, 77777, 0, 0), linux.ENODEV},
				{"of no group", linux.MCAST_MSFILTER, groupFilterOf(source(1), 1, 0, 0), linux.EINVAL},
				{"a filter", linux.MCAST_MSFILTER, groupFilterOf(c.group, 1, linux.MCAST_INCLUDE, 2, source(2), source(1)), 0},
			})
			wantFilter(t, "the filter", s, c.level, linux.MCAST_MSFILTER, groupFilterOf(c.group, 1, 0, 2, source(0), source(0)),
				groupFilterOf(c.group, 1, linux.MCAST_INCLUDE, 2, source(2), source(1)))
			wantFilter(t, "a part of it", s, c.level, linux.MCAST_MSFILTER, groupFilterOf(c.group, 1, 0, 1, source(0)),
				groupFilterOf(c.group, 1, linux.MCAST_INCLUDE, 2, source(2)))
			for _, index := range []int{0, 77777} {
				_, errno := s.get(c.level, linux.MCAST_MSFILTER, groupFilterOf(c.group, index, 0, 0))
				wantErrno(t, errno, linux.EADDRNOTAVAIL, "asking about another interface")
			}
			_, errno := s.get(c.level, linux.MCAST_MSFILTER, groupFilterOf(c.group, 1, 0, 0)[:143])
			wantErrno(t, errno, linux.EINVAL, "asking badly")
		})
	}
}

// IP_MULTICAST_ALL and IPV6_MULTICAST_ALL control which groups a socket receives.
func TestMulticastAll(t *testing.T) {
	bothSockets(t, linux.AF_INET, func(t *testing.T, s optionSocket) {
		runSteps(t, s, linux.IPPROTO_IP, []step{
			{"neither", linux.IP_MULTICAST_ALL, socket.IntValue(2), linux.EINVAL},
			{"off", linux.IP_MULTICAST_ALL, socket.IntValue(0), 0},
			{"on, as a byte", linux.IP_MULTICAST_ALL, []byte{1}, 0},
		})
		wantErrno(t, s.set(linux.IPPROTO_IPV6, linux.IPV6_MULTICAST_ALL, socket.IntValue(1)), linux.ENOPROTOOPT, "of the other family")
	})
	p := process(t)
	for _, c := range []struct{ domain, level, name, want int }{
		{linux.AF_INET, linux.IPPROTO_IP, linux.IP_MULTICAST_ALL, 1},
		{linux.AF_INET6, linux.IPPROTO_IP, linux.IP_MULTICAST_ALL, 0},
		{linux.AF_INET6, linux.IPPROTO_IPV6, linux.IPV6_MULTICAST_ALL, 1},
	} {
		s := fd(t)(p.Socket(c.domain, linux.SOCK_DGRAM, 0))
		if got, errno := p.GetSockOpt(s, c.level, c.name); errno != 0 || !slices.Equal(got, socket.IntValue(c.want)) {
			t.Errorf("%+v begins as %x, %v", c, got, errno)
		}
	}
}

// /proc/net/mcfilter and mcfilter6 list filters of unbound sockets, and drop them on close.
func TestMCFilter(t *testing.T) {
	p := process(t)
	four := [...]int{fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0)), fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))}
	six := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_DGRAM, 0))
	ok(t, p.SetSockOpt(four[0], linux.IPPROTO_IP, linux.IP_ADD_SOURCE_MEMBERSHIP, mreqSource("239.1.2.3", "127.0.0.1", "10.0.0.1")))
	ok(t, p.SetSockOpt(four[1], linux.IPPROTO_IP, linux.IP_ADD_MEMBERSHIP, mreqn("239.1.2.3", "127.0.0.1", 0)))
	ok(t, p.SetSockOpt(four[1], linux.IPPROTO_IP, linux.IP_BLOCK_SOURCE, mreqSource("239.1.2.3", "127.0.0.1", "10.0.0.2")))
	ok(t, p.SetSockOpt(six, linux.IPPROTO_IPV6, linux.MCAST_JOIN_SOURCE_GROUP, sourceReq("ff02::114", "2001:db8::1", 1)))
	const (
		head4 = "Idx Device        MCA        SRC    INC    EXC\n"
		want4 = head4 + "  1     lo 0xef010203 0x0a000001      1      0\n  1     lo 0xef010203 0x0a000002      0      1\n"
		head6 = "Idx Device                Multicast Address                   Source Address    INC    EXC\n"
		want6 = head6 + "  1     lo ff020000000000000000000000000114 20010db8000000000000000000000001      1      0\n"
	)
	if got := ProcNet["mcfilter"](p); got != want4 {
		t.Errorf("mcfilter:\n%swant\n%s", got, want4)
	}
	if got := ProcNet["mcfilter6"](p); got != want6 {
		t.Errorf("mcfilter6:\n%swant\n%s", got, want6)
	}
	for _, s := range append(four[:], six) {
		ok(t, p.Close(s))
	}
	if got := ProcNet["mcfilter"](p) + ProcNet["mcfilter6"](p); got != head4+head6 {
		t.Errorf("without sockets:\n%s", got)
	}
}
