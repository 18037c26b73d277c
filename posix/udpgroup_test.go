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
