package posix

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"testing"
)

// Filters of sources: each step is done by Loam and by Linux, on its loopback, and has one
// errno on both.

// storage is a struct sockaddr_storage.
func storage(addr string) []byte {
	a := Address{Family: syscall.AF_INET, IP: netip.AddrPortFrom(netip.MustParseAddr(addr), 0)}
	if a.IP.Addr().Is6() {
		a.Family = syscall.AF_INET6
	}
	return append(a.Append(nil), make([]byte, sizeStorage)...)[:sizeStorage]
}

// sourceReq is struct group_source_req.
func sourceReq(group, source string, index int) []byte {
	return slices.Concat(binary.NativeEndian.AppendUint64(nil, uint64(index)), storage(group), storage(source))
}

// groupFilterOf is struct group_filter, count its number of sources.
func groupFilterOf(group string, index, mode, count int, sources ...string) []byte {
	b := append(binary.NativeEndian.AppendUint64(nil, uint64(index)), storage(group)...)
	b = binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(b, uint32(mode)), uint32(count))
	for _, source := range sources {
		b = append(b, storage(source)...)
	}
	return b
}

// mreqSource is struct ip_mreq_source, and msfilter is struct ip_msfilter.
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
		script(t, loamSocket{p, fd(t)(p.Socket(domain, syscall.SOCK_DGRAM, 0))})
	})
	t.Run("Linux", func(t *testing.T) {
		s, err := syscall.Socket(domain, syscall.SOCK_DGRAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(s)
		script(t, linuxSocket(s))
	})
}

// step is an option that is set, and what comes of it.
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

// wantFilter reads a filter as IP_MSFILTER or MCAST_MSFILTER has it.
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
		add, drop      = syscall.IP_ADD_SOURCE_MEMBERSHIP, syscall.IP_DROP_SOURCE_MEMBERSHIP
		block, unblock = syscall.IP_BLOCK_SOURCE, syscall.IP_UNBLOCK_SOURCE
		join, leave    = syscall.IP_ADD_MEMBERSHIP, syscall.IP_DROP_MEMBERSHIP
		filter         = syscall.IP_MSFILTER
		in, ex         = modeInclude, 0
	)
	one, two := mreqSource(group, lo, first), mreqSource(group, lo, second)
	var ten []step
	for n := range 10 {
		ten = append(ten, step{"ten sources", add, mreqSource(group, lo, fmt.Sprint("10.0.1.", n)), 0})
	}
	bothSockets(t, syscall.AF_INET, func(t *testing.T, s optionSocket) {
		runSteps(t, s, syscall.IPPROTO_IP, []step{
			{"too short", add, one[:11], syscall.EINVAL},
			{"too long", add, append(slices.Clone(one), 0), syscall.EINVAL},
			{"no group", add, mreqSource(first, lo, first), syscall.EINVAL},
			{"another's address", add, mreqSource(group, "192.0.2.9", first), syscall.ENODEV},
			{"dropping before joining", drop, one, syscall.EINVAL},
			{"blocking before joining", block, one, syscall.EINVAL},
			{"unblocking before joining", unblock, one, syscall.EINVAL},
			{"a filter before joining", filter, msfilter(group, lo, ex, 0), syscall.EINVAL},
			{"leaving by a filter before joining", filter, msfilter(group, lo, in, 0), syscall.EADDRNOTAVAIL},
			{"a source", add, one, 0},
			{"the same", add, one, syscall.EADDRNOTAVAIL},
			{"another", add, two, 0},
			{"blocking one", block, two, syscall.EINVAL},
			{"dropping an unknown one", drop, mreqSource(group, lo, "10.0.0.3"), syscall.EADDRNOTAVAIL},
			{"joining all", join, mreqn(group, lo, 0), syscall.EADDRINUSE},
		})
		wantFilter(t, "how many", s, syscall.IPPROTO_IP, filter, msfilter(group, lo, 0, 0), msfilter(group, lo, in, 2))
		wantFilter(t, "one of two", s, syscall.IPPROTO_IP, filter, msfilter(group, lo, 0, 1, "0.0.0.0"), msfilter(group, lo, in, 2, first))
		wantFilter(t, "all", s, syscall.IPPROTO_IP, mcastFilter, groupFilterOf(group, 1, 0, 2, "0.0.0.0", "0.0.0.0"), groupFilterOf(group, 1, in, 2, first, second))
		runSteps(t, s, syscall.IPPROTO_IP, append([]step{
			{"leaving", leave, mreqn(group, lo, 0), 0},
			{"a source again", add, one, 0},
			{"dropping the last one", drop, one, 0},
			{"has left", leave, mreqn(group, lo, 0), syscall.EADDRNOTAVAIL},
		}, ten...))
		runSteps(t, s, syscall.IPPROTO_IP, []step{
			{"and one more", add, one, syscall.ENOBUFS},
			{"leaving all", filter, msfilter(group, lo, in, 0), 0},
			{"joining all", join, mreqn(group, lo, 0), 0},
			{"blocking", block, one, 0},
			{"twice", block, one, syscall.EADDRNOTAVAIL},
			{"adding", add, two, syscall.EINVAL},
			{"dropping", drop, one, syscall.EINVAL},
			{"unblocking", unblock, one, 0},
			{"twice", unblock, one, syscall.EADDRNOTAVAIL},
			{"adding where one was blocked", add, two, syscall.EINVAL},
			{"no such mode", filter, msfilter(group, lo, 2, 0), syscall.EINVAL},
			{"half a filter", filter, msfilter(group, lo, ex, 0)[:15], syscall.EINVAL},
			{"fewer than said", filter, msfilter(group, lo, ex, 2, first), syscall.EINVAL},
			{"too many", filter, msfilter(group, lo, ex, 11, first), syscall.ENOBUFS},
			{"of no group", filter, msfilter(first, lo, ex, 0), syscall.EINVAL},
			{"at another's address", filter, msfilter(group, "192.0.2.9", ex, 0), syscall.ENODEV},
			{"a filter", filter, msfilter(group, lo, in, 2, second, first), 0},
		})
		wantFilter(t, "in the order that was given", s, syscall.IPPROTO_IP, filter,
			msfilter(group, lo, 0, 9, make4(9)...), msfilter(group, lo, in, 2, second, first))
		runSteps(t, s, syscall.IPPROTO_IP, []step{
			{"one of nothing", filter, msfilter(group, lo, ex, 0), 0},
			{"may change its mode", add, one, 0},
		})
		for _, request := range [][]byte{msfilter(group, lo, 0, 0)[:15], msfilter(first, lo, 0, 0)} {
			_, errno := s.get(syscall.IPPROTO_IP, filter, request)
			wantErrno(t, errno, syscall.EINVAL, "asking badly")
		}
		_, errno := s.get(syscall.IPPROTO_IP, filter, msfilter("239.1.2.4", lo, 0, 0))
		wantErrno(t, errno, syscall.EADDRNOTAVAIL, "asking about a group that is not heard")
	})
}

// make4 is so many addresses that say nothing.
func make4(n int) []string { return slices.Repeat([]string{"0.0.0.0"}, n) }

func TestGroupSource(t *testing.T) {
	for _, c := range []struct {
		domain, level, most  int
		group, other, source string
		wrong                Errno // to join a group of the other family
	}{
		{syscall.AF_INET, syscall.IPPROTO_IP, 10, "239.1.2.3", "ff02::114", "10.0.0.%d", syscall.EINVAL},
		{syscall.AF_INET6, syscall.IPPROTO_IPV6, 64, "ff02::114", "239.1.2.3", "2001:db8::%x", syscall.EADDRNOTAVAIL},
	} {
		source := func(n int) string { return fmt.Sprintf(c.source, n) }
		request := func(n int) []byte { return sourceReq(c.group, source(n), 1) }
		bothSockets(t, c.domain, func(t *testing.T, s optionSocket) {
			runSteps(t, s, c.level, []step{
				{"too short", mcastJoinSourceGroup, request(1)[:263], syscall.EINVAL},
				{"a group of the other family", mcastJoinSourceGroup, sourceReq(c.other, source(1), 1), syscall.EADDRNOTAVAIL},
				{"a source of the other family", mcastJoinSourceGroup, sourceReq(c.group, c.other, 1), syscall.EADDRNOTAVAIL},
				{"no group", mcastJoinSourceGroup, sourceReq(source(1), source(1), 1), syscall.EINVAL},
				{"no interface", mcastJoinSourceGroup, sourceReq(c.group, source(1), 77777), syscall.ENODEV},
				{"joining the other family", mcastJoinGroup, groupReq(c.other, 1), c.wrong},
				{"leaving before joining", mcastLeaveSourceGroup, request(1), syscall.EINVAL},
				{"on no interface", mcastLeaveSourceGroup, sourceReq(c.group, source(1), 77777), syscall.ENODEV},
				{"blocking before joining", mcastBlockSource, request(1), syscall.EINVAL},
				{"a filter before joining", mcastFilter, groupFilterOf(c.group, 1, 0, 0), syscall.EINVAL},
				{"leaving by a filter before joining", mcastFilter, groupFilterOf(c.group, 1, modeInclude, 0), syscall.EADDRNOTAVAIL},
				{"a source", mcastJoinSourceGroup, request(1), 0},
				{"the same", mcastJoinSourceGroup, request(1), syscall.EADDRNOTAVAIL},
				{"blocking another", mcastBlockSource, request(2), syscall.EINVAL},
				{"leaving another", mcastLeaveSourceGroup, request(2), syscall.EADDRNOTAVAIL},
				{"joining all", mcastJoinGroup, groupReq(c.group, 1), syscall.EADDRINUSE},
				{"leaving the last one", mcastLeaveSourceGroup, request(1), 0},
				{"has left", mcastLeaveGroup, groupReq(c.group, 1), syscall.EADDRNOTAVAIL},
			})
			for n := range c.most {
				wantErrno(t, s.set(c.level, mcastJoinSourceGroup, request(n+1)), 0, "many sources")
			}
			runSteps(t, s, c.level, []step{
				{"and one more", mcastJoinSourceGroup, request(100), syscall.ENOBUFS},
				{"leaving all", mcastLeaveGroup, groupReq(c.group, 1), 0},
				{"joining all", mcastJoinGroup, groupReq(c.group, 1), 0},
				{"blocking", mcastBlockSource, request(1), 0},
				{"twice", mcastBlockSource, request(1), syscall.EADDRNOTAVAIL},
				{"hearing another", mcastJoinSourceGroup, request(2), syscall.EINVAL},
				{"unblocking", mcastUnblockSource, request(1), 0},
				{"twice", mcastUnblockSource, request(1), syscall.EADDRNOTAVAIL},
				{"half a filter", mcastFilter, groupFilterOf(c.group, 1, 0, 0)[:143], syscall.EINVAL},
				{"no such mode", mcastFilter, groupFilterOf(c.group, 1, 2, 0), syscall.EINVAL},
				{"fewer than said", mcastFilter, groupFilterOf(c.group, 1, 0, 2, source(1)), syscall.EINVAL},
				{"too many", mcastFilter, groupFilterOf(c.group, 1, 0, c.most+1, source(1)), syscall.ENOBUFS},
				{"on no interface", mcastFilter, groupFilterOf(c.group, 77777, 0, 0), syscall.ENODEV},
				{"of no group", mcastFilter, groupFilterOf(source(1), 1, 0, 0), syscall.EINVAL},
				{"a filter", mcastFilter, groupFilterOf(c.group, 1, modeInclude, 2, source(2), source(1)), 0},
			})
			wantFilter(t, "the filter", s, c.level, mcastFilter, groupFilterOf(c.group, 1, 0, 2, source(0), source(0)),
				groupFilterOf(c.group, 1, modeInclude, 2, source(2), source(1)))
			wantFilter(t, "a part of it", s, c.level, mcastFilter, groupFilterOf(c.group, 1, 0, 1, source(0)),
				groupFilterOf(c.group, 1, modeInclude, 2, source(2)))
			for _, index := range []int{0, 77777} {
				_, errno := s.get(c.level, mcastFilter, groupFilterOf(c.group, index, 0, 0))
				wantErrno(t, errno, syscall.EADDRNOTAVAIL, "asking about another interface")
			}
			_, errno := s.get(c.level, mcastFilter, groupFilterOf(c.group, 1, 0, 0)[:143])
			wantErrno(t, errno, syscall.EINVAL, "asking badly")
		})
	}
}

// IP_MULTICAST_ALL and IPV6_MULTICAST_ALL.
func TestMulticastAll(t *testing.T) {
	bothSockets(t, syscall.AF_INET, func(t *testing.T, s optionSocket) {
		runSteps(t, s, syscall.IPPROTO_IP, []step{
			{"neither", ipMulticastAll, intValue(2), syscall.EINVAL},
			{"off", ipMulticastAll, intValue(0), 0},
			{"on, as a byte", ipMulticastAll, []byte{1}, 0},
		})
		wantErrno(t, s.set(syscall.IPPROTO_IPV6, ipv6MulticastAll, intValue(1)), syscall.ENOPROTOOPT, "of the other family")
	})
	p := process(t)
	for _, c := range []struct{ domain, level, name, want int }{
		{syscall.AF_INET, syscall.IPPROTO_IP, ipMulticastAll, 1},
		{syscall.AF_INET6, syscall.IPPROTO_IP, ipMulticastAll, 0},
		{syscall.AF_INET6, syscall.IPPROTO_IPV6, ipv6MulticastAll, 1},
	} {
		s := fd(t)(p.Socket(c.domain, syscall.SOCK_DGRAM, 0))
		if got, errno := p.GetSockOpt(s, c.level, c.name); errno != 0 || !slices.Equal(got, intValue(c.want)) {
			t.Errorf("%+v begins as %x, %v", c, got, errno)
		}
	}
}

// /proc/net/mcfilter and mcfilter6, before a socket is bound and when it is closed.
func TestMCFilter(t *testing.T) {
	p := process(t)
	four := [...]int{fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)), fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0))}
	six := fd(t)(p.Socket(syscall.AF_INET6, syscall.SOCK_DGRAM, 0))
	ok(t, p.SetSockOpt(four[0], syscall.IPPROTO_IP, syscall.IP_ADD_SOURCE_MEMBERSHIP, mreqSource("239.1.2.3", "127.0.0.1", "10.0.0.1")))
	ok(t, p.SetSockOpt(four[1], syscall.IPPROTO_IP, syscall.IP_ADD_MEMBERSHIP, mreqn("239.1.2.3", "127.0.0.1", 0)))
	ok(t, p.SetSockOpt(four[1], syscall.IPPROTO_IP, syscall.IP_BLOCK_SOURCE, mreqSource("239.1.2.3", "127.0.0.1", "10.0.0.2")))
	ok(t, p.SetSockOpt(six, syscall.IPPROTO_IPV6, mcastJoinSourceGroup, sourceReq("ff02::114", "2001:db8::1", 1)))
	const (
		head4 = "Idx Device        MCA        SRC    INC    EXC\n"
		want4 = head4 + "  1     lo 0xef010203 0x0a000001      1      0\n  1     lo 0xef010203 0x0a000002      0      1\n"
		head6 = "Idx Device                Multicast Address                   Source Address    INC    EXC\n"
		want6 = head6 + "  1     lo ff020000000000000000000000000114 20010db8000000000000000000000001      1      0\n"
	)
	if got := p.procMCFilter(); got != want4 {
		t.Errorf("mcfilter:\n%swant\n%s", got, want4)
	}
	if got := p.procMCFilter6(); got != want6 {
		t.Errorf("mcfilter6:\n%swant\n%s", got, want6)
	}
	for _, s := range append(four[:], six) {
		ok(t, p.Close(s))
	}
	if got := p.procMCFilter() + p.procMCFilter6(); got != head4+head6 {
		t.Errorf("without sockets:\n%s", got)
	}
}
