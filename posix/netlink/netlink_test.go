package netlink

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"testing"

	"loam/abi/linux"
	"loam/posix/file"
	"loam/posix/socket"
	"loam/stack"
)

// A malformed request returns EINVAL.
func TestRouteRequest(t *testing.T) {
	net := stack.New(stack.Config{Shards: 1})
	defer net.Close()
	for _, body := range [][]byte{
		nil,
		make([]byte, 11),
		{linux.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		{linux.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, linux.RTA_DST, 0, 1, 2, 3, 0},
		{linux.AF_INET6, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, linux.RTA_DST, 0, 1, 2, 3, 4},
		{linux.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, linux.RTA_DST, 0, 1, 2, 3, 4, 6, 0, linux.RTA_OIF, 0, 1, 0},
	} {
		var r reply
		if errno := describeRouteTo(net, &r, body); errno != linux.EINVAL {
			t.Errorf("%v: errno %v", body, errno)
		}
		if r.datagrams != nil {
			t.Errorf("%v: %v", body, r.datagrams)
		}
	}
}

// Malformed requests are answered or rejected, and break nothing.
func FuzzNetlink(f *testing.F) {
	f.Add([]byte{16, 0, 0, 0, 18, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{255, 255, 255, 255, 18, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{17, 0, 0, 0, 18, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9})
	net := stack.New(stack.Config{Shards: 1})
	f.Cleanup(func() { net.Close() })
	s, _ := New(net, new(file.Serial), 7, linux.SOCK_RAW, linux.NETLINK_ROUTE, nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		s.Send(b, socket.Outgoing{})
		for {
			r, errno := s.Recv(make([]byte, 1<<16), 0)
			if errno != 0 {
				break
			}
			if r.N == 0 {
				t.Error("an empty answer")
			}
		}
	})
}

// messages sends requests, and returns the messages of the replies.
func messages(t *testing.T, s socket.Socket, request []byte) (all [][]byte) {
	t.Helper()
	if n, errno := s.Send(request, socket.Outgoing{}); n != len(request) || errno != 0 {
		t.Fatalf("%d, %v", n, errno)
	}
	for {
		b := make([]byte, 1<<16)
		r, errno := s.Recv(b, 0)
		if errno != 0 {
			return all
		}
		for b = b[:r.N]; len(b) >= linux.NLMSG_HDRLEN; {
			n := int(binary.NativeEndian.Uint32(b))
			all = append(all, b[:n])
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}

// The program ip sends a dump request in a buffer that is larger than the request. Linux ignores a rest that is no
// message (netlink_rcv_skb).
func TestRestOfRequest(t *testing.T) {
	net := stack.New(stack.Config{Shards: 1})
	defer net.Close()
	s, _ := New(net, new(file.Serial), 7, linux.SOCK_RAW, linux.NETLINK_ROUTE, nil)
	request := make([]byte, 152)
	copy(request, []byte{24, 0, 0, 0, linux.RTM_GETADDR, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0})
	if all := messages(t, s, request); len(all) == 0 {
		t.Error("no reply")
	}
}

// A dump of one family lists only addresses of the family. With NETLINK_GET_STRICT_CHK, a dump for an interface lists only
// addresses of the interface.
func TestDumpFilters(t *testing.T) {
	net := stack.New(stack.Config{Shards: 1})
	defer net.Close()
	s, _ := New(net, new(file.Serial), 7, linux.SOCK_RAW, linux.NETLINK_ROUTE, nil)
	const lo, strict = 1, 12
	count := func(family, index byte) int {
		request := []byte{24, 0, 0, 0, linux.RTM_GETADDR, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0, family, 0, 0, 0, index, 0, 0, 0}
		return len(messages(t, s, request)) - 1 // the last message is NLMSG_DONE
	}
	all := count(linux.AF_UNSPEC, 0)
	if v4, v6 := count(linux.AF_INET, 0), count(linux.AF_INET6, 0); all == 0 || v4 == 0 || v4+v6 != all {
		t.Errorf("%d addresses of IPv4 and %d of IPv6, and %d of both", v4, v6, all)
	}
	if got := count(linux.AF_UNSPEC, 99); got != all {
		t.Errorf("without the strict check, another interface has %d addresses, want %d", got, all)
	}
	if errno := s.SetOption(270, strict, []byte{1, 0, 0, 0}); errno != 0 {
		t.Fatal(errno)
	}
	if got, none := count(linux.AF_UNSPEC, lo), count(linux.AF_UNSPEC, 99); got != all || none != 0 {
		t.Errorf("%d addresses of lo, want %d; %d of another interface", got, all, none)
	}
}

// A dump of multicast routes (`ip mroute`) lists no other routes. A family without routes of its own lists all.
func TestMulticastRoutes(t *testing.T) {
	net := stack.New(stack.Config{Shards: 1})
	defer net.Close()
	if err := net.AddAddress("lo", netip.MustParsePrefix("192.0.2.1/24")); err != nil {
		t.Fatal(err)
	}
	s, _ := New(net, new(file.Serial), 7, linux.SOCK_RAW, linux.NETLINK_ROUTE, nil)
	for family, want := range map[byte]int{linux.AF_UNSPEC: 1, linux.AF_INET: 1, linux.RTNL_FAMILY_IPMR: 0, linux.RTNL_FAMILY_IP6MR: 0, 255: 1} {
		request := []byte{28, 0, 0, 0, linux.RTM_GETROUTE, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0, family, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		if got := len(messages(t, s, request)) - 1; got != want {
			t.Errorf("%d routes of family %d, want %d", got, family, want)
		}
	}
}

// A link has the attributes that the program ip shows: the length of the queue, the state, the broadcast address.
func TestLinkAttributes(t *testing.T) {
	net := stack.New(stack.Config{Shards: 1})
	defer net.Close()
	s, _ := New(net, new(file.Serial), 7, linux.SOCK_RAW, linux.NETLINK_ROUTE, nil)
	request := append([]byte{32, 0, 0, 0, linux.RTM_GETLINK, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 16)...)
	all := messages(t, s, request)
	if len(all) != 2 {
		t.Fatalf("%d messages", len(all))
	}
	attributes := all[0][linux.NLMSG_HDRLEN+linux.SizeofIfInfomsg:]
	for typ, want := range map[uint16]string{
		linux.IFLA_TXQLEN: "\xe8\x03\x00\x00", linux.IFLA_OPERSTATE: "\x00", linux.IFLA_LINKMODE: "\x00", linux.IFLA_GROUP: "\x00\x00\x00\x00",
		linux.IFLA_QDISC: "noqueue\x00", linux.IFLA_BROADCAST: "\x00\x00\x00\x00\x00\x00",
	} {
		if got, ok := AttributeOf(attributes, typ); !ok || string(got) != want {
			t.Errorf("attribute %d is %q, want %q", typ, got, want)
		}
	}
}

// The rules of policy routing are those of Linux 6.18 in a new network namespace, byte for byte. There are no queueing disciplines.
func TestRules(t *testing.T) {
	net := stack.New(stack.Config{Shards: 1})
	defer net.Close()
	s, _ := New(net, new(file.Serial), 7, linux.SOCK_RAW, linux.NETLINK_ROUTE, nil)
	const end, tail = "00000000", "08000e00ffffffff0500150002000000"
	inet := []string{"02000000ff0000010000000008000f00ff000000" + tail, "02000000fe0000010000000008000f00fe000000" + tail + "08000600fe7f0000",
		"02000000fd0000010000000008000f00fd000000" + tail + "08000600ff7f0000"}
	inet6 := []string{"0a000000ff0000010000000008000f00ff000000" + tail, "0a000000fe0000010000000008000f00fe000000" + tail + "08000600fe7f0000"}
	for _, test := range []struct {
		request, family byte
		want            []string
	}{
		{linux.RTM_GETRULE, linux.AF_UNSPEC, slices.Concat(inet, inet6, []string{end})},
		{linux.RTM_GETRULE, linux.AF_INET, append(slices.Clone(inet), end)}, {linux.RTM_GETRULE, linux.AF_INET6, append(slices.Clone(inet6), end)},
		{linux.RTM_GETRULE, 7, []string{"9fffffff"}}, {linux.RTM_GETQDISC, 0, []string{end}},
	} {
		request := []byte{28, 0, 0, 0, test.request, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0, 0, test.family, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		var got []string
		for _, m := range messages(t, s, request) {
			got = append(got, hex.EncodeToString(m[linux.NLMSG_HDRLEN:]))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("request %d, family %d: %q, want %q", test.request, test.family, got, test.want)
		}
	}
}
