package posix

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/stack"
)

// mreqn is struct ip_mreqn (ip(7)); without an index it is cut to struct ip_mreq.
func mreqn(group, addr string, index int) []byte {
	b := append(netip.MustParseAddr(group).AsSlice(), netip.MustParseAddr(addr).AsSlice()...)
	if index != 0 {
		b = binary.NativeEndian.AppendUint32(b, uint32(index))
	}
	return b
}

// A group is joined on the interface that an index or an address names, before
// the socket is bound or after it; /proc/net/igmp says who is a member.
func TestMembership(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0))
	join := func(b []byte) Errno { return p.SetSockOpt(s, syscall.IPPROTO_IP, syscall.IP_ADD_MEMBERSHIP, b) }
	leave := func(b []byte) Errno { return p.SetSockOpt(s, syscall.IPPROTO_IP, syscall.IP_DROP_MEMBERSHIP, b) }
	byAddress, byIndex := mreqn("224.0.0.254", "127.0.0.1", 0), mreqn("239.1.2.3", "0.0.0.0", 1)
	refuses := func(when string) {
		t.Helper()
		wantErrno(t, join(byAddress[:7]), syscall.EINVAL, "half a group "+when)
		wantErrno(t, join(mreqn("10.0.0.1", "127.0.0.1", 0)), syscall.EINVAL, "no group "+when)
		wantErrno(t, join(mreqn("224.0.0.254", "192.0.2.1", 0)), syscall.ENODEV, "another's address "+when)
		wantErrno(t, join(mreqn("224.0.0.254", "0.0.0.0", 77)), syscall.ENODEV, "an index of no interface "+when)
		wantErrno(t, leave(byAddress), syscall.EADDRNOTAVAIL, "leaving before joining "+when)
		ok(t, join(byAddress))
		wantErrno(t, join(byAddress), syscall.EADDRINUSE, "joining twice "+when)
		ok(t, leave(byAddress))
	}
	refuses("before it is bound")
	ok(t, join(byIndex))
	ok(t, p.Bind(s, localhost(0)))
	refuses("when it is bound")
	ok(t, join(byAddress))

	const want = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n" +
		"1\tlo        :     3      V3\n" +
		"\t\t\t\t010000E0     1 0:00000000\t\t0\n" +
		"\t\t\t\tFE0000E0     1 0:00000000\t\t0\n" +
		"\t\t\t\t030201EF     1 0:00000000\t\t0\n"
	if got := p.procIGMP(); got != want {
		t.Errorf("/proc/net/igmp:\n%swant\n%s", got, want)
	}
	ok(t, p.Close(s))
	if got := p.procIGMP(); strings.Count(got, "\n") != 3 {
		t.Errorf("/proc/net/igmp without members:\n%s", got)
	}
}

// /proc/net/igmp6 has the groups that addresses go with, too; nobody is told of that of all
// nodes (the flag 8). The timer of an answer is in hundredths of a second.
func TestIGMP6(t *testing.T) {
	p := process(t)
	const want = "1    lo              ff020000000000000000000000000001     1 0000000C 0\n" +
		"1    lo              ff0200000000000000000001ff000001     1 00000004 0\n"
	if got := p.procIGMP6(); got != want {
		t.Errorf("/proc/net/igmp6:\n%swant\n%s", got, want)
	}
	if running, left := timer(&stack.Membership{Answer: 1234 * time.Millisecond}); running != 1 || left != 123 {
		t.Errorf("an answer in 1.234 s is %d:%d", running, left)
	}
}

// IP_MULTICAST_IF says by which interface, and from which address, groups are sent to that no
// route leads to; what it takes and tells is as on Linux.
func TestMulticastInterface(t *testing.T) {
	p := process(t)
	s, member := fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)), fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0))
	set := func(b []byte) Errno { return p.SetSockOpt(s, syscall.IPPROTO_IP, syscall.IP_MULTICAST_IF, b) }
	want := func(addr string) {
		t.Helper()
		got, errno := p.GetSockOpt(s, syscall.IPPROTO_IP, syscall.IP_MULTICAST_IF)
		if errno != 0 || netip.AddrFrom4([4]byte(got)) != netip.MustParseAddr(addr) {
			t.Errorf("IP_MULTICAST_IF is %v, %v, want %s", got, errno, addr)
		}
	}
	want("0.0.0.0")
	wantErrno(t, set([]byte{192, 0, 2, 1}), syscall.EADDRNOTAVAIL, "an address of nobody")
	wantErrno(t, set(mreqn("239.1.2.3", "0.0.0.0", 77)), syscall.EADDRNOTAVAIL, "an index of no interface")

	group := Address{Family: syscall.AF_INET, IP: netip.MustParseAddrPort("239.1.2.3:5353")}
	ok(t, p.Bind(member, Address{Family: syscall.AF_INET, IP: netip.MustParseAddrPort("0.0.0.0:5353")}))
	ok(t, p.SetSockOpt(member, syscall.IPPROTO_IP, syscall.IP_ADD_MEMBERSHIP, mreqn("239.1.2.3", "127.0.0.1", 0)))
	_, errno := p.Send(s, []byte("x"), Outgoing{To: group})
	wantErrno(t, errno, syscall.ENETUNREACH, "no route")
	for _, value := range [][]byte{{127, 0, 0, 1}, mreqn("0.0.0.0", "127.0.0.1", 0), mreqn("239.1.2.3", "0.0.0.0", 1)} {
		ok(t, set(value))
		if _, errno := p.Send(s, []byte("x"), Outgoing{To: group}); errno != 0 {
			t.Fatalf("sent by %v: %v", value, errno)
		}
		b := make([]byte, 2)
		if n, errno := p.Read(member, b); n != 1 || errno != 0 {
			t.Errorf("sent by %v: %d bytes arrive, %v", value, n, errno)
		}
	}
	want("0.0.0.0") // an index without an address
	ok(t, set([]byte{127, 0, 0, 1}))
	want("127.0.0.1")
	ok(t, set(make([]byte, 4)))
	_, errno = p.Send(s, []byte("x"), Outgoing{To: group})
	wantErrno(t, errno, syscall.ENETUNREACH, "no route again")
}

// What is sent to groups is heard on this host unless the sender says otherwise.
func TestMulticastLoop(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(syscall.AF_INET6, syscall.SOCK_DGRAM, 0))
	for _, o := range []struct {
		level, name int
		two         Errno // of the value 2
	}{{syscall.IPPROTO_IP, syscall.IP_MULTICAST_LOOP, 0}, {syscall.IPPROTO_IPV6, syscall.IPV6_MULTICAST_LOOP, syscall.EINVAL}} {
		for _, want := range []byte{1, 0, 1} {
			ok(t, p.SetSockOpt(s, o.level, o.name, []byte{want, 0, 0, 0}))
			got, errno := p.GetSockOpt(s, o.level, o.name)
			if errno != 0 || got[0] != want {
				t.Errorf("option %d of level %d is %v, %v, want %d", o.name, o.level, got, errno, want)
			}
		}
		wantErrno(t, p.SetSockOpt(s, o.level, o.name, []byte{2, 0, 0, 0}), o.two, "2")
	}
}
