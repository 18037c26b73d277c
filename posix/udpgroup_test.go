package posix

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/posix/procnet"
	"loam/stack"
)

// mreqn encodes a struct ip_mreqn (ip(7)), or without an index a struct ip_mreq.
func mreqn(group, addr string, index int) []byte {
	b := append(netip.MustParseAddr(group).AsSlice(), netip.MustParseAddr(addr).AsSlice()...)
	if index != 0 {
		b = binary.NativeEndian.AppendUint32(b, uint32(index))
	}
	return b
}

// A group can be joined on the interface given by an index or an address, before or after bind;
// /proc/net/igmp lists the members.
func TestMembership(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	join := func(b []byte) Errno { return p.SetSockOpt(s, linux.IPPROTO_IP, linux.IP_ADD_MEMBERSHIP, b) }
	leave := func(b []byte) Errno { return p.SetSockOpt(s, linux.IPPROTO_IP, linux.IP_DROP_MEMBERSHIP, b) }
	byAddress, byIndex := mreqn("224.0.0.254", "127.0.0.1", 0), mreqn("239.1.2.3", "0.0.0.0", 1)
	refuses := func(when string) {
		t.Helper()
		wantErrno(t, join(byAddress[:7]), linux.EINVAL, "half a group "+when)
		wantErrno(t, join(mreqn("10.0.0.1", "127.0.0.1", 0)), linux.EINVAL, "no group "+when)
		wantErrno(t, join(mreqn("224.0.0.254", "192.0.2.1", 0)), linux.ENODEV, "another's address "+when)
		wantErrno(t, join(mreqn("224.0.0.254", "0.0.0.0", 77)), linux.ENODEV, "an index of no interface "+when)
		wantErrno(t, leave(byAddress), linux.EADDRNOTAVAIL, "leaving before joining "+when)
		ok(t, join(byAddress))
		wantErrno(t, join(byAddress), linux.EADDRINUSE, "joining twice "+when)
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
	if got := ProcNet["igmp"](p); got != want {
		t.Errorf("/proc/net/igmp:\n%swant\n%s", got, want)
	}
	ok(t, p.Close(s))
	if got := ProcNet["igmp"](p); strings.Count(got, "\n") != 3 {
		t.Errorf("/proc/net/igmp without members:\n%s", got)
	}
}

// /proc/net/igmp6 also lists the groups that belong to addresses. The all-nodes group is never reported
// (flag 8). The timer is in hundredths of a second.
func TestIGMP6(t *testing.T) {
	p := process(t)
	const want = "1    lo              ff020000000000000000000000000001     1 0000000C 0\n" +
		"1    lo              ff0200000000000000000001ff000001     1 00000004 0\n"
	if got := ProcNet["igmp6"](p); got != want {
		t.Errorf("/proc/net/igmp6:\n%swant\n%s", got, want)
	}
	if running, left := procnet.ReportTimer(&stack.Membership{Answer: 1234 * time.Millisecond}); running != 1 || left != 123 {
		t.Errorf("an answer in 1.234 s is %d:%d", running, left)
	}
}

// IP_MULTICAST_IF sets the interface and source address for groups without a route. Values and errors
// are those of Linux.
func TestMulticastInterface(t *testing.T) {
	p := process(t)
	s, member := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0)), fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	set := func(b []byte) Errno { return p.SetSockOpt(s, linux.IPPROTO_IP, linux.IP_MULTICAST_IF, b) }
	want := func(addr string) {
		t.Helper()
		got, errno := p.GetSockOpt(s, linux.IPPROTO_IP, linux.IP_MULTICAST_IF)
		if errno != 0 || netip.AddrFrom4([4]byte(got)) != netip.MustParseAddr(addr) {
			t.Errorf("IP_MULTICAST_IF is %v, %v, want %s", got, errno, addr)
		}
	}
	want("0.0.0.0")
	wantErrno(t, set([]byte{192, 0, 2, 1}), linux.EADDRNOTAVAIL, "an address of nobody")
	wantErrno(t, set(mreqn("239.1.2.3", "0.0.0.0", 77)), linux.EADDRNOTAVAIL, "an index of no interface")
	wantErrno(t, set(nil), linux.EINVAL, "no address")

	group := Address{Family: linux.AF_INET, IP: netip.MustParseAddrPort("239.1.2.3:5353")}
	ok(t, p.Bind(member, Address{Family: linux.AF_INET, IP: netip.MustParseAddrPort("0.0.0.0:5353")}))
	ok(t, p.SetSockOpt(member, linux.IPPROTO_IP, linux.IP_ADD_MEMBERSHIP, mreqn("239.1.2.3", "127.0.0.1", 0)))
	_, errno := p.Send(s, []byte("x"), Outgoing{To: group})
	wantErrno(t, errno, linux.ENETUNREACH, "no route")
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
	want("0.0.0.0") // the last value has an index and no address
	ok(t, set([]byte{127, 0, 0, 1}))
	want("127.0.0.1")
	ok(t, set(make([]byte, 4)))
	_, errno = p.Send(s, []byte("x"), Outgoing{To: group})
	wantErrno(t, errno, linux.ENETUNREACH, "no route again")
}

// Datagrams to a group are also delivered on the sending host, unless the sender disables it.
func TestMulticastLoop(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET6, linux.SOCK_DGRAM, 0))
	for _, o := range []struct {
		level, name int
		two         Errno // errno for the option value 2
	}{{linux.IPPROTO_IP, linux.IP_MULTICAST_LOOP, 0}, {linux.IPPROTO_IPV6, linux.IPV6_MULTICAST_LOOP, linux.EINVAL}} {
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
