//go:build linux

package interop

import (
	"net/netip"
	"strings"
	"testing"
)

// TestARPing checks that Loam answers arping(8), and that it defends its address when another host
// probes for it (RFC 5227 section 2.1.1).
func TestARPing(t *testing.T) {
	l := newLab(t, setup{})
	out := l.run("arping", "-c", "1", "-I", l.tap, l.loam.addr.String())
	if !strings.Contains(out, "Received 1 response(s)") || !strings.Contains(strings.ToLower(out), l.ifc.MAC().String()) {
		t.Error(out)
	}
	if out, err := l.try("arping", "-D", "-c", "1", "-w", "5", "-I", l.tap, l.loam.addr.String()); err == nil {
		t.Errorf("nobody defends the address:\n%s", out)
	}
	free := l.loam.addr.Next().String()
	if out, err := l.try("arping", "-D", "-c", "1", "-w", "1", "-I", l.tap, free); err != nil {
		t.Errorf("somebody has %s:\n%s", free, out)
	}
}

// TestARPAnnouncement checks that Linux notices when an address moves to Loam.
func TestARPAnnouncement(t *testing.T) {
	l := newLab(t, setup{noAddress: true})
	l.sysctl("neigh/"+l.tap+"/locktime", "0") // makes Linux accept updates that follow each other within a second
	l.ip("neighbour", "replace", l.loam.addr.String(), "lladdr", "02:00:00:00:00:99", "dev", l.tap, "nud", "stale")
	l.must(l.stack.AddAddress(l.tap, netip.PrefixFrom(l.loam.addr, 24)))
	l.eventually("Linux has the new address of its neighbour", func() bool {
		return strings.Contains(l.run("ip", "neighbour", "show", l.loam.addr.String()), l.ifc.MAC().String())
	})
}

// TestARPAnnouncementReceived checks that Loam notices when its neighbour's link-layer address changes,
// and keeps its connections.
func TestARPAnnouncementReceived(t *testing.T) {
	const moved = "02:77:77:77:77:77"
	l := newLab(t, setup{})
	client, server := l.connect(l.directions()[0])
	l.ip("link", "set", l.tap, "address", moved)
	// An update that contradicts another one less than a second old is ignored, as on Linux, so it is
	// repeated.
	l.start("arping", "-A", "-c", "5", "-I", l.tap, l.linux.addr.String())
	l.eventually("Loam has the new address of its neighbour", func() bool {
		for _, e := range l.ifc.Neighbours() {
			if e.Addr == l.linux.addr && e.MAC.String() == moved {
				return true
			}
		}
		return false
	})
	l.must(transfer(client, server, 1<<20))
	if _, err := l.stack.Ping(l.ctx, l.linux.addr, 56); err != nil {
		t.Error(err)
	}
}
