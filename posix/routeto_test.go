package posix

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"testing"

	linkpipe "loam/link/pipe"
	"loam/stack"
)

// routed is a process on a network with a router.
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

// getRoute asks for the route to dst, by a link if out is not 0 (RTM_GETROUTE without
// NLM_F_DUMP), and returns all that is answered.
func getRoute(t *testing.T, p *Process, dst netip.Addr, out int, flags uint16) []syscall.NetlinkMessage {
	t.Helper()
	s := fd(t)(p.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW, syscall.NETLINK_ROUTE))
	body := []byte{family(dst), byte(dst.BitLen()), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	attribute(&body, syscall.RTA_DST, dst.AsSlice())
	if out != 0 {
		attribute(&body, syscall.RTA_OIF, intValue(out))
	}
	return askNetlink(t, p, s, syscall.RTM_GETROUTE, flags, body)
}

// The route to one address is told as Linux tells it: what was seen there, of a host with the
// same addresses, is what is wanted here.
func TestRouteToOne(t *testing.T) {
	p, eth0 := routed(t)
	const cloned, local = 0x200, 0x80000000
	for _, c := range []struct {
		dst, source, gateway string
		out, table           int
		kind                 byte
		flags                uint32
	}{
		{"127.0.0.1", "127.0.0.1", "", 1, syscall.RT_TABLE_MAIN, syscall.RTN_LOCAL, local | cloned},
		{"192.0.2.1", "192.0.2.2", "", eth0, syscall.RT_TABLE_MAIN, syscall.RTN_UNICAST, cloned},
		{"198.51.100.1", "192.0.2.2", "192.0.2.1", eth0, syscall.RT_TABLE_MAIN, syscall.RTN_UNICAST, cloned},
		{"192.0.2.2", "192.0.2.2", "", 1, syscall.RT_TABLE_MAIN, syscall.RTN_LOCAL, local | cloned},
		{"224.0.0.1", "192.0.2.2", "", eth0, syscall.RT_TABLE_MAIN, syscall.RTN_MULTICAST, local | 0x20000000 | cloned},
		{"::1", "::1", "", 1, syscall.RT_TABLE_LOCAL, syscall.RTN_LOCAL, 0},
		{"2001:db8::9", "2001:db8::2", "", eth0, syscall.RT_TABLE_MAIN, syscall.RTN_UNICAST, 0},
	} {
		dst := netip.MustParseAddr(c.dst)
		all := getRoute(t, p, dst, 0, 0)
		if len(all) != 1 || all[0].Header.Type != syscall.RTM_NEWROUTE || all[0].Header.Flags != 0 {
			t.Errorf("%s: %+v", c.dst, all)
			continue
		}
		b := all[0].Data
		if b[0] != family(dst) || int(b[1]) != dst.BitLen() || int(b[4]) != c.table || b[7] != c.kind || binary.NativeEndian.Uint32(b[8:]) != c.flags {
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
			syscall.RTA_TABLE: string(intValue(c.table)), syscall.RTA_DST: string(dst.AsSlice()), syscall.RTA_OIF: string(intValue(c.out)),
			syscall.RTA_PREFSRC: string(netip.MustParseAddr(c.source).AsSlice()),
		}
		if c.gateway != "" {
			want[syscall.RTA_GATEWAY] = string(netip.MustParseAddr(c.gateway).AsSlice())
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

// A route that there is none of is an error, and nothing else; so is a link that there is none of.
func TestNoRouteToOne(t *testing.T) {
	p, eth0 := routed(t)
	for _, c := range []struct {
		dst  string
		out  int
		want Errno
	}{
		{"2001:db8:1::1", 0, syscall.ENETUNREACH},
		{"198.51.100.1", 1, syscall.ENETUNREACH},
		{"198.51.100.1", 99, syscall.ENODEV},
		{"198.51.100.1", eth0, 0},
	} {
		all := getRoute(t, p, netip.MustParseAddr(c.dst), c.out, syscall.NLM_F_ACK)
		last := all[len(all)-1]
		if errno := -int32(binary.NativeEndian.Uint32(last.Data)); last.Header.Type != syscall.NLMSG_ERROR || Errno(errno) != c.want {
			t.Errorf("%s by %d: %+v, want %v", c.dst, c.out, last, c.want)
		}
		if c.want != 0 && len(all) != 1 {
			t.Errorf("%s by %d: %+v", c.dst, c.out, all)
		}
	}
}

// What is no request for a route is EINVAL, whatever is in it.
func TestRouteRequest(t *testing.T) {
	p, _ := routed(t)
	for _, body := range [][]byte{
		nil,
		make([]byte, 11),
		{syscall.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		{syscall.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, syscall.RTA_DST, 0, 1, 2, 3, 0},
		{syscall.AF_INET6, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, syscall.RTA_DST, 0, 1, 2, 3, 4},
		{syscall.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, syscall.RTA_DST, 0, 1, 2, 3, 4, 6, 0, syscall.RTA_OIF, 0, 1, 0},
	} {
		var r reply
		wantErrno(t, p.describeRouteTo(&r, body), syscall.EINVAL, "a request")
		if r.datagrams != nil {
			t.Errorf("%v: %v", body, r.datagrams)
		}
	}
}
