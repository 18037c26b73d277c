//go:build linux

package interop

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"loam/stack"
	"loam/wire"
)

// Multicast groups behind a switch with IGMP and MLD snooping: a bridge of the kernel, which is also
// the querier.
//
//	Loam ── tap ── bridge ── veth ── veth, a sender
//
// The bridge forwards groups according to Loam's reports.

// newSnoopingLab returns a lab whose tap is a port of a bridge that uses the given versions of IGMP and
// MLD.
func newSnoopingLab(t *testing.T, igmp, mld int) *lab {
	t.Helper()
	l, kernel := openLab(t)
	l.need("bridge")
	l.makeTap(setup{}, kernel)
	l.ip("link", "add", l.snooper(), "type", "bridge", "mcast_snooping", "1",
		"mcast_igmp_version", fmt.Sprint(igmp), "mcast_mld_version", fmt.Sprint(mld),
		"mcast_startup_query_interval", "100", "mcast_query_response_interval", "100") // the times are in hundredths of a second
	l.ip("link", "set", l.snooper(), "type", "bridge", "mcast_querier", "1") // enabled last, because the querier first waits for the maximum response time
	l.Cleanup(func() { l.ip("link", "del", l.snooper()) })
	l.ip("link", "add", l.port(), "type", "veth", "peer", "name", l.sender())
	l.Cleanup(func() { l.ip("link", "del", l.port()) })
	for _, name := range []string{l.snooper(), l.sender()} {
		l.openIPv6(name) // an MLD query needs a source address, here immediately
		l.must(os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/accept_dad", []byte("0"), 0))
	}
	for _, name := range []string{l.tap, l.port()} {
		l.ip("link", "set", name, "master", l.snooper())
	}
	for _, name := range []string{l.snooper(), l.port(), l.sender()} {
		l.ip("link", "set", name, "up")
	}
	l.ip("address", "add", kernel.Next().Next().String()+"/24", "dev", l.sender())
	l.ip("route", "add", "239.0.0.0/8", "dev", l.sender())
	l.attach(setup{})
	l.loam = loamHost(l.stack, kernel.Next())
	l.must(l.stack.AddAddress(l.tap, netip.PrefixFrom(l.loam.addr, 24)))
	return l
}

func (l *lab) snooper() string { return l.tap + "br" }
func (l *lab) port() string    { return l.tap + "port" }
func (l *lab) sender() string  { return l.tap + "from" }

// snooped reports whether the bridge forwards a group to Loam.
func (l *lab) snooped(group netip.Addr) bool {
	l.Helper()
	return strings.Contains(l.run("bridge", "mdb", "show", "dev", l.snooper()), fmt.Sprintf("port %s grp %v ", l.tap, group))
}

// TestSnooping checks that the bridge learns a group when it is joined, forgets it when it is left, and
// that packets to it from another port arrive, for all versions.
func TestSnooping(t *testing.T) {
	for _, v := range []struct{ igmp, mld int }{{3, 2}, {2, 1}} {
		t.Run(fmt.Sprintf("IGMPv%d, MLDv%d", v.igmp, v.mld), func(t *testing.T) {
			l := newSnoopingLab(t, v.igmp, v.mld)
			l.eventually("the bridge has asked", func() bool {
				g := l.ifc.Groups()
				return g.IGMP == v.igmp && g.MLD == v.mld
			})
			l.eventually("it knows what Neighbor Discovery needs", func() bool {
				return l.snooped(wire.SolicitedNode(wire.LinkLocal6(l.ifc.MAC())))
			})
			for _, c := range []struct{ local, group, other string }{
				{"0.0.0.0:5000", "239.1.2.3", "239.1.2.4"},
				{"[::]:5000", "ff02::4:5", "ff02::4:6"},
			} {
				l.receiveGroup(netip.MustParseAddrPort(c.local), netip.MustParseAddr(c.group), netip.MustParseAddr(c.other))
			}
		})
	}
}

// receiveGroup joins a group, receives a packet sent to it, and leaves it.
func (l *lab) receiveGroup(local netip.AddrPort, group, other netip.Addr) {
	l.Helper()
	c, err := l.stack.ListenUDP(local, stack.UDPOptions{})
	l.must(err)
	defer c.Close()
	l.eventually("the bridge forwards only what is wanted", func() bool {
		before := l.unwanted()
		l.sendTo(other, local.Port())
		time.Sleep(50 * time.Millisecond)
		return l.unwanted() == before
	})
	l.must(c.JoinGroup(group, l.ifc))
	l.eventually("the bridge knows "+group.String(), func() bool { return l.snooped(group) })
	b := make([]byte, 100)
	l.must(c.SetDeadline(l.until()))
	l.sendTo(group, local.Port())
	n, from, err := c.ReadFromUDPAddrPort(b)
	l.must(err)
	if string(b[:n]) != group.String() {
		l.Errorf("%v says %q", from, b[:n])
	}
	l.must(c.LeaveGroup(group, l.ifc))
	l.eventually("the bridge has forgotten "+group.String(), func() bool { return !l.snooped(group) })
}

// unwanted returns the number of received datagrams for which Loam had no socket.
func (l *lab) unwanted() uint64 {
	c := l.stack.Counters()
	return c.Get(stack.UDPNoPort)
}

// sendTo sends the name of a group to the group, from the other port of the bridge.
func (l *lab) sendTo(group netip.Addr, port uint16) {
	l.Helper()
	if group.Is6() {
		group = group.WithZone(l.sender())
	}
	c, err := net.Dial("udp", netip.AddrPortFrom(group, port).String())
	l.must(err)
	defer c.Close()
	_, err = fmt.Fprint(c, group.WithZone(""))
	l.must(err)
}

// TestSnoopingDecoded checks that tshark has no warnings about Loam's messages, in all versions.
func TestSnoopingDecoded(t *testing.T) {
	for _, v := range []struct {
		igmp, mld int
		want      []string
	}{
		{3, 2, []string{"Membership Report / Join group 239.1.2.3 for any sources", "Membership Report / Leave group 239.1.2.3", "Multicast Listener Report Message v2"}},
		{2, 1, []string{"Membership Report group 239.1.2.3", "Leave Group 239.1.2.3", "Multicast Listener Report", "Multicast Listener Done"}},
	} {
		t.Run(fmt.Sprintf("IGMPv%d, MLDv%d", v.igmp, v.mld), func(t *testing.T) {
			l := newSnoopingLab(t, v.igmp, v.mld)
			l.need("tshark")
			l.eventually("the bridge has asked", func() bool {
				g := l.ifc.Groups()
				return g.IGMP == v.igmp && g.MLD == v.mld
			})
			file := filepath.Join(t.TempDir(), "groups.pcap")
			l.capture(file)
			for _, c := range []struct{ local, group string }{{"0.0.0.0:5000", "239.1.2.3"}, {"[::]:5001", "ff02::4:5"}} {
				u, err := l.stack.ListenUDP(netip.MustParseAddrPort(c.local), stack.UDPOptions{})
				l.must(err)
				defer u.Close()
				group := netip.MustParseAddr(c.group)
				l.must(u.JoinGroup(group, l.ifc))
				l.eventually("the bridge knows "+c.group, func() bool { return l.snooped(group) })
				l.must(u.LeaveGroup(group, l.ifc))
			}
			l.eventually("all that is said, as tshark sees it", func() bool {
				said := l.decodedGroups(file)
				return !slices.ContainsFunc(v.want, func(want string) bool {
					return !slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, want) })
				})
			})
		})
	}
}

// decodedGroups returns tshark's decoding of Loam's messages about groups, in a file that tcpdump is
// writing. A warning fails the test.
func (l *lab) decodedGroups(file string) (said []string) {
	l.Helper()
	// The only expected error is an incomplete packet at the end of the file.
	out, _ := l.try("tshark", "-n", "-r", file, "-o", "ip.check_checksum:TRUE", "-Y", "eth.src=="+l.ifc.MAC().String()+" && (igmp || icmpv6.type in {130,131,132,143})",
		"-T", "fields", "-e", "_ws.col.Info", "-e", "_ws.expert.message", "-e", "igmp.checksum.status", "-e", "icmpv6.checksum.status")
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 {
			continue
		}
		said = append(said, f[0])
		if f[1] != "" || f[2]+f[3] != "1" {
			l.Errorf("%q, checksums %s %s: %s", f[0], f[2], f[3], f[1])
		}
	}
	return said
}
