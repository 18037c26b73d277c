package posix

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"testing"

	"loam/abi/linux"
	linkpipe "loam/link/pipe"
	"loam/posix/netlink"
	"loam/posix/socket"
	"loam/stack"
)

// routed returns a process on a network with a router.
func routed(t *testing.T) (p *Process, eth0 int) {
	t.Helper()
	p = process(t)
	near, far := linkpipe.New(linkpipe.Config{})
	t.Cleanup(func() { far.Close() })
	i, err := p.net.Attach(near, stack.InterfaceConfig{Name: "eth0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{"192.0.2.2/24", "2001:db8::2/64"} {
		if err := p.net.AddAddress("eth0", netip.MustParsePrefix(a)); err != nil {
			t.Fatal(err)
		}
	}
	err = p.net.AddRoute(stack.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("192.0.2.1")})
	if err != nil {
		t.Fatal(err)
	}
	return p, i.Index()
}

// getRoute requests the route to dst, through interface out if that is not 0 (RTM_GETROUTE without
// NLM_F_DUMP). It returns all answers.
func getRoute(t *testing.T, p *Process, dst netip.Addr, out int, flags uint16) []syscall.NetlinkMessage {
	t.Helper()
	s := fd(t)(p.Socket(linux.AF_NETLINK, linux.SOCK_RAW, linux.NETLINK_ROUTE))
	body := []byte{netlink.Family(dst), byte(dst.BitLen()), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	netlink.Attribute(&body, linux.RTA_DST, dst.AsSlice())
	if out != 0 {
		netlink.Attribute(&body, linux.RTA_OIF, socket.IntValue(out))
	}
	return askNetlink(t, p, s, linux.RTM_GETROUTE, flags, body)
}

// The route to an address is described as on Linux. The expected values were observed on a Linux host
// with the same addresses.
func TestRouteToOne(t *testing.T) {
	p, eth0 := routed(t)
	const cloned, local = 0x200, 0x80000000
	for _, c := range []struct {
		dst, source, gateway string
		out, table           int
		kind                 byte
		flags                uint32
	}{
		{"127.0.0.1", "127.0.0.1", "", 1, linux.RT_TABLE_MAIN, linux.RTN_LOCAL, local | cloned},
		{"192.0.2.1", "192.0.2.2", "", eth0, linux.RT_TABLE_MAIN, linux.RTN_UNICAST, cloned},
		{"198.51.100.1", "192.0.2.2", "192.0.2.1", eth0, linux.RT_TABLE_MAIN, linux.RTN_UNICAST, cloned},
		{"192.0.2.2", "192.0.2.2", "", 1, linux.RT_TABLE_MAIN, linux.RTN_LOCAL, local | cloned},
		{"224.0.0.1", "192.0.2.2", "", eth0, linux.RT_TABLE_MAIN, linux.RTN_MULTICAST, local | 0x20000000 | cloned},
		{"::1", "::1", "", 1, linux.RT_TABLE_LOCAL, linux.RTN_LOCAL, 0},
		{"2001:db8::9", "2001:db8::2", "", eth0, linux.RT_TABLE_MAIN, linux.RTN_UNICAST, 0},
	} {
		dst := netip.MustParseAddr(c.dst)
		all := getRoute(t, p, dst, 0, 0)
		if len(all) != 1 || all[0].Header.Type != linux.RTM_NEWROUTE || all[0].Header.Flags != 0 {
			t.Errorf("%s: %+v", c.dst, all)
			continue
		}
		b := all[0].Data
		if b[0] != netlink.Family(dst) || int(b[1]) != dst.BitLen() || int(b[4]) != c.table || b[7] != c.kind || binary.NativeEndian.Uint32(b[8:]) != c.flags {
			t.Errorf("%s: %v", c.dst, b[:12])
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(&all[0])
		if err != nil {
			t.Fatal(err)
		}
		got := map[uint16]string{}
		for _, a := range attrs {
			got[a.Attr.Type] = string(a.Value)
		}
		want := map[uint16]string{
			linux.RTA_TABLE: string(socket.IntValue(c.table)), linux.RTA_DST: string(dst.AsSlice()), linux.RTA_OIF: string(socket.IntValue(c.out)),
			linux.RTA_PREFSRC: string(netip.MustParseAddr(c.source).AsSlice()), linux.RTA_CACHEINFO: string(make([]byte, 32)),
		}
		if last := attrs[len(attrs)-1].Attr.Type; last != linux.RTA_CACHEINFO {
			t.Errorf("%s: the last attribute is %d", c.dst, last)
		}
		if c.gateway != "" {
			want[linux.RTA_GATEWAY] = string(netip.MustParseAddr(c.gateway).AsSlice())
		}
		for typ, value := range want {
			if got[typ] != value {
				t.Errorf("%s: attribute %d is %q, want %q", c.dst, typ, got[typ], value)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: attributes %v", c.dst, got)
		}
	}
}

// An unreachable address and an unknown interface return an error and no route.
func TestNoRouteToOne(t *testing.T) {
	p, eth0 := routed(t)
	for _, c := range []struct {
		dst  string
		out  int
		want Errno
	}{
		{"2001:db8:1::1", 0, linux.ENETUNREACH},
		{"198.51.100.1", 1, linux.ENETUNREACH},
		{"198.51.100.1", 99, linux.ENODEV},
		{"198.51.100.1", eth0, 0},
	} {
		all := getRoute(t, p, netip.MustParseAddr(c.dst), c.out, linux.NLM_F_ACK)
		last := all[len(all)-1]
		if errno := -int32(binary.NativeEndian.Uint32(last.Data)); last.Header.Type != linux.NLMSG_ERROR || Errno(errno) != c.want {
			t.Errorf("%s by %d: %+v, want %v", c.dst, c.out, last, c.want)
		}
		if c.want != 0 && len(all) != 1 {
			t.Errorf("%s by %d: %+v", c.dst, c.out, all)
		}
	}
}

// A dump of routes with the family 255, which does not exist, lists the routes of all families, as on Linux. Libraries derived from
// vishvananda/netlink send this family if the caller asks for all.
func TestRoutesOfUnknownFamily(t *testing.T) {
	p, _ := routed(t)
	s := fd(t)(p.Socket(linux.AF_NETLINK, linux.SOCK_RAW, linux.NETLINK_ROUTE))
	dump := func(family byte) int {
		body := make([]byte, 12)
		body[0] = family
		return len(askNetlink(t, p, s, linux.RTM_GETROUTE, linux.NLM_F_REQUEST|linux.NLM_F_DUMP, body))
	}
	if all, unknown := dump(linux.AF_UNSPEC), dump(255); unknown != all {
		t.Errorf("%d messages, want %d", unknown, all)
	}
}
