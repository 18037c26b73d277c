package demux

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// fake is a socket of a test.
type fake struct {
	device int
	peer   netip.AddrPort
}

func (s *fake) Fit(from netip.AddrPort, on int) Fit {
	fit := Fits
	switch s.device {
	case 0:
	case on:
		fit |= Bound
	default:
		return 0
	}
	switch s.peer {
	case netip.AddrPort{}:
	case from:
		fit |= Connected
	default:
		return 0
	}
	return fit
}

// place returns the Place of a socket, described by an address and letters: r for SO_REUSEPORT, o for IPV6_V6ONLY, and
// others that it ignores.
func place(text string) Place {
	address, letters, _ := strings.Cut(text, " ")
	addr := netip.MustParseAddr(address)
	return Place{
		Local:     netip.AddrPortFrom(addr.Unmap(), 53),
		Six:       addr.Is6(),
		V6Only:    strings.Contains(letters, "o"),
		ReusePort: strings.Contains(letters, "r"),
	}
}

// fill returns a table of sockets in the order of their creation. The letter d binds a socket to interface 1, e to interface 2,
// and c connects it to the sender with port 1000.
func fill(sockets []string) (*Table[*fake], []*fake) {
	table := NewTable[*fake](7)
	var list []*fake
	for _, text := range sockets {
		s := new(fake)
		_, letters, _ := strings.Cut(text, " ")
		switch {
		case strings.Contains(letters, "d"):
			s.device = 1
		case strings.Contains(letters, "e"):
			s.device = 2
		}
		if strings.Contains(letters, "c") {
			s.peer = netip.MustParseAddrPort("127.0.0.9:1000")
		}
		table.Add(s, place(text))
		list = append(list, s)
	}
	return &table, list
}

// receivers returns the indexes of the sockets that receive packets to an address, from several ports, on interface 1.
func receivers(sockets []string, to string, from ...uint16) (found []int) {
	table, list := fill(sockets)
	for _, port := range from {
		sender := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.9"), port)
		s := table.Find(sender, netip.AddrPortFrom(netip.MustParseAddr(to), 53), 1)
		if i := slices.Index(list, s); !slices.Contains(found, i) {
			found = append(found, i)
		}
	}
	slices.Sort(found)
	return found
}

// many returns n ports from 2000 upwards.
func many(n int) (ports []uint16) {
	for i := range n {
		ports = append(ports, 2000+uint16(i))
	}
	return ports
}

// The rows show what Linux 6.18 does; TestAgainstLinux compares more cases with the running kernel.
func TestFind(t *testing.T) {
	for _, test := range []struct {
		sentence string
		to       string
		sockets  []string
		want     []int
	}{
		{"nobody", "127.0.0.1", []string{"127.0.0.2"}, []int{-1}},
		{"the address precedes all addresses", "127.0.0.1", []string{"127.0.0.1", "0.0.0.0"}, []int{0}},
		{"the newest receives it", "127.0.0.1", []string{"0.0.0.0", "0.0.0.0"}, []int{1}},
		{"a group divides the flows", "127.0.0.1", []string{"0.0.0.0 r", "0.0.0.0 r", "0.0.0.0 r"}, []int{0, 1, 2}},
		{"IPv4 precedes IPv6", "127.0.0.1", []string{"0.0.0.0", "::"}, []int{0}},
		{"the IPv4 group precedes the IPv6 group", "127.0.0.1", []string{":: r", "0.0.0.0 r", ":: r", "0.0.0.0 r"}, []int{1, 3}},
		{"IPv6 is for the IPv6 group", "::1", []string{":: r", "0.0.0.0 r", ":: r", "0.0.0.0 r"}, []int{0, 2}},
		{"a group of IPv6 receives IPv4", "127.0.0.2", []string{":: r", "127.0.0.1 r", ":: r"}, []int{0, 2}},
		{"the address of IPv4 precedes ::", "127.0.0.1", []string{"127.0.0.1 r", ":: r", "0.0.0.0 r"}, []int{0}},
		{"a mapped address is IPv6", "127.0.0.1", []string{"::ffff:127.0.0.1 r", "127.0.0.1 r", "127.0.0.1 r", "::ffff:127.0.0.1 r"}, []int{1, 2}},
		{"a mapped address precedes all", "127.0.0.1", []string{"::ffff:127.0.0.1 r", "0.0.0.0 r"}, []int{0}},
		{"IPv6-only sockets are another group", "::1", []string{":: ro", ":: r", ":: ro", ":: r"}, []int{0, 2}},
		{"the interface precedes IPv4", "127.0.0.1", []string{":: d", "0.0.0.0"}, []int{0}},
		{"the interface precedes the newest", "127.0.0.1", []string{"0.0.0.0 d", "0.0.0.0"}, []int{0}},
		{"groups precede by age", "127.0.0.1", []string{"0.0.0.0 rd", "0.0.0.0 r", "0.0.0.0 rd", "0.0.0.0 r"}, []int{1, 3}},
		{"another interface", "127.0.0.1", []string{"0.0.0.0", "127.0.0.1 e"}, []int{0}},
		{"no group without the option", "127.0.0.1", []string{"0.0.0.0 r", "0.0.0.0 r", "0.0.0.0"}, []int{2}},
		{"others are not in the group", "127.0.0.1", []string{"0.0.0.0", "0.0.0.0 r", "0.0.0.0 r"}, []int{1, 2}},
		{"another peer", "127.0.0.1", []string{"0.0.0.0 r", "0.0.0.0 r", "0.0.0.0 rc"}, []int{0, 1}},
		{"another peer at the address", "127.0.0.1", []string{"127.0.0.1 rc", "0.0.0.0 r"}, []int{1}},
	} {
		if got := receivers(test.sockets, test.to, many(60)...); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q: %v, want %v", test.sentence, test.sockets, got, test.want)
		}
	}
	for _, sockets := range [][]string{
		{"0.0.0.0 rc", "0.0.0.0 r", "0.0.0.0 r"}, {":: c", "127.0.0.1"}, {"0.0.0.0 c", "127.0.0.1 rd", "127.0.0.1 rd"}, {"0.0.0.0 rdc", "0.0.0.0 rc"},
	} {
		if got := receivers(sockets, "127.0.0.1", 1000); !slices.Equal(got, []int{0}) {
			t.Errorf("%q: a packet of the peer reaches %v, not the first", sockets, got)
		}
	}
}

func TestZone(t *testing.T) {
	table := NewTable[*fake](7)
	s := new(fake)
	at := Place{Local: netip.MustParseAddrPort("[fe80::1%eth0]:53"), Six: true}
	table.Add(s, at)
	if found := table.Find(netip.AddrPort{}, netip.MustParseAddrPort("[fe80::1%eth0]:53"), 1); found != s {
		t.Error("an address with a zone is not found")
	}
	if table.Remove(s, at); len(table.at) != 0 {
		t.Errorf("%d addresses are left", len(table.at))
	}
}

// A flow stays at its socket, and a removed socket is not found.
func TestRemove(t *testing.T) {
	table, list := fill([]string{":: r", ":: r", "0.0.0.0 r"})
	from, to := netip.MustParseAddrPort("127.0.0.9:2000"), netip.MustParseAddrPort("[::1]:53")
	first := table.Find(from, to, 1)
	if first == nil || table.Find(from, to, 1) != first {
		t.Fatal("the flow moves")
	}
	all := slices.Collect(table.At(to))
	if len(all) != 2 || slices.Contains(all, list[2]) {
		t.Errorf("%d sockets receive packets to all, want the two of IPv6", len(all))
	}
	table.Remove(first, place(":: r"))
	if second := table.Find(from, to, 1); second == nil || second == first {
		t.Error("the other socket does not receive the packet")
	}
	for _, s := range list {
		table.Remove(s, place(":: r"))
	}
	if n := len(slices.Collect(table.All())); n != 0 || len(table.at) != 0 {
		t.Errorf("%d sockets at %d addresses are left", n, len(table.at))
	}
}

func TestFindAllocatesNothing(t *testing.T) {
	table, _ := fill([]string{":: r", ":: r", "0.0.0.0 r", "0.0.0.0 r"})
	from, to := netip.MustParseAddrPort("127.0.0.9:2000"), netip.MustParseAddrPort("127.0.0.1:53")
	if n := testing.AllocsPerRun(100, func() { table.Find(from, to, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFind(b *testing.B) {
	for name, sockets := range map[string][]string{"one": {"0.0.0.0"}, "four": {"0.0.0.0 r", "0.0.0.0 r", "0.0.0.0 r", "0.0.0.0 r"}} {
		b.Run(name, func(b *testing.B) {
			table, _ := fill(sockets)
			from, to := netip.MustParseAddrPort("127.0.0.9:2000"), netip.MustParseAddrPort("127.0.0.1:53")
			for b.Loop() {
				table.Find(from, to, 1)
			}
		})
	}
}
