package posix

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"loam/abi/linux"
	"loam/posix/netdevice"
	"loam/posix/netlink"
	"loam/wire"
)

// A dump of RTM_GETNEIGH lists the neighbours of the requested family and interface.
func TestNeighboursByNetlink(t *testing.T) {
	p, eth0 := routed(t)
	four, six := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	mac := wire.MAC{2, 0, 0, 0, 0, 9}
	for _, i := range netdevice.All(p.net) {
		if i.Index() == eth0 {
			i.SetNeighbour(four, mac)
			i.SetNeighbour(six, mac)
		}
	}
	s := fd(t)(p.Socket(linux.AF_NETLINK, linux.SOCK_RAW, linux.NETLINK_ROUTE))
	ok(t, p.Bind(s, Address{Family: linux.AF_NETLINK}))
	for _, c := range []struct {
		about  string
		family byte
		index  int
		want   []netip.Addr
	}{
		{"all", linux.AF_UNSPEC, 0, []netip.Addr{four, six}},
		{"of IPv4", linux.AF_INET, 0, []netip.Addr{four}},
		{"of IPv6 on the link", linux.AF_INET6, eth0, []netip.Addr{six}},
		{"of the loopback", linux.AF_UNSPEC, 1, nil},
	} {
		body := append(binary.NativeEndian.AppendUint32([]byte{c.family, 0, 0, 0}, uint32(c.index)), 0, 0, 0, 0)
		all := askNetlink(t, p, s, linux.RTM_GETNEIGH, linux.NLM_F_REQUEST|linux.NLM_F_DUMP, body)
		if len(all) != len(c.want)+1 {
			t.Errorf("%s: %d messages, want %d", c.about, len(all), len(c.want)+1)
			continue
		}
		for i, want := range c.want {
			const permanent, header = 0x80, 12 // NUD_PERMANENT, struct ndmsg
			b := all[i].Data
			if all[i].Header.Type != linux.RTM_NEWNEIGH || b[0] != netlink.Family(want) || int(binary.NativeEndian.Uint32(b[4:])) != eth0 || binary.NativeEndian.Uint16(b[8:]) != permanent {
				t.Errorf("%s: %+v", c.about, all[i])
			}
			dst, _ := netlink.AttributeOf(b[header:], linux.NDA_DST)
			at, _ := netlink.AttributeOf(b[header:], linux.NDA_LLADDR)
			if !bytes.Equal(dst, want.AsSlice()) || !bytes.Equal(at, mac[:]) {
				t.Errorf("%s: % x at % x, want %s at % x", c.about, dst, at, want, mac)
			}
		}
	}
}
