//go:build linux

package session

import (
	"bytes"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"loam/gen/probe"
	"loam/internal/netns"
)

// link gives the far host 64 more addresses on the link, of both families. It returns target ranges that contain these
// addresses and unused ones.
func link(t *testing.T, l *lab) (targets4, targets6 string, mac string) {
	t.Helper()
	net4 := strings.TrimSuffix(l.gateway, "0.2")
	l.IP(t, "route", "add", "local", net4+"0.64/26", "dev", "lo")
	enable6 := func(dev string) {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+dev+"/disable_ipv6", []byte("0"), 0); err != nil {
			t.Fatal(err)
		}
	}
	enable6(l.near)
	l.Do(t, func() { enable6(l.far) })
	netns.IP(t, "addr", "add", "fd77::1/64", "dev", l.near, "nodad")
	for _, a := range []string{"fd77::2/64", "fd77::10/64", "fd77::11/64"} {
		l.IP(t, "addr", "add", a, "dev", l.far, "nodad")
	}
	l.Do(t, func() {
		i, err := net.InterfaceByName(l.far)
		if err != nil {
			t.Fatal(err)
		}
		mac = i.HardwareAddr.String()
	})
	return net4 + "0.0/24", "fd77::/120", mac
}

// All neighbours are found over both families, and the results contain their Ethernet addresses.
func TestNeighbours(t *testing.T) {
	l := newLab(t)
	targets4, targets6, mac := link(t, l)
	for targets, want := range map[string]int{targets4: 65, targets6: 3} {
		l.out.Reset()
		o := l.options
		o.Targets, o.Interface, o.Probe.Kind = ranges(t, targets), l.near, probe.Neighbour
		o.Fields = probe.DefaultFields(probe.Neighbour)
		sum, err := Run(t.Context(), o)
		if err != nil || !sum.Finished || int(sum.Found()) != want || sum.Asked != 256 {
			t.Errorf("%s: %+v, %v", targets, sum, err)
		}
		for line := range bytes.Lines(l.out.Bytes()) {
			var r struct{ Address, MAC string }
			if err := json.Unmarshal(line, &r); err != nil || r.MAC != mac {
				t.Errorf("%s, %v", line, err)
			}
		}
	}
}

// Targets on the same link are probed at their own Ethernet addresses. Targets whose Ethernet address is unknown are
// not probed.
func TestScanOfTheLink(t *testing.T) {
	for _, c := range []struct {
		kind probe.Kind
		says probe.Answer
	}{{probe.Echo, probe.EchoReply}, {probe.SYN, probe.Reset}, {probe.UDP, probe.PortUnreachable}} {
		t.Run(c.kind.String(), func(t *testing.T) {
			l := newLab(t)
			targets, _, _ := link(t, l)
			var notes []string
			o := l.options
			o.Note = func(s string) { notes = append(notes, s) }
			o.Targets, o.Probe.Kind, o.Probe.All = ranges(t, targets), c.kind, true
			if c.kind.HasPorts() {
				o.Probe.Ports = []uint16{7, 9}
			}
			asked := uint64(65 * max(1, len(o.Probe.Ports)))
			sum, err := Run(t.Context(), o)
			if err != nil || !sum.Finished || sum.Answers[c.says] != asked || sum.Asked != asked || sum.Absent != 191*asked/65 || sum.Sent < asked {
				t.Errorf("%v: %+v, %v", c.kind, sum, err)
			}
			if all := strings.Join(notes, "\n"); !strings.Contains(all, "65 of 256 have an Ethernet address") {
				t.Errorf("%v: %s", c.kind, all)
			}
		})
	}
}

// Probes use all source addresses, and an answer to any of them counts.
func TestSources(t *testing.T) {
	for _, method := range []string{"ring", "tc"} {
		t.Run(method, func(t *testing.T) {
			l := newLab(t)
			own := strings.TrimSuffix(l.gateway, "2")
			for _, a := range []string{"11/24", "12/24"} {
				netns.IP(t, "addr", "add", own+a, "dev", l.near)
			}
			o := l.options
			o.Method, o.Probe.Retries = method, 0
			o.Probe.Source, o.Probe.More = netip.MustParseAddr(own+"11"), []netip.Addr{netip.MustParseAddr(own + "12"), netip.MustParseAddr(own + "1")}
			sum, err := Run(t.Context(), o)
			if err != nil || sum.Found() != count || sum.Forged != 0 {
				t.Errorf("%s: %+v, %v", method, sum, err)
			}
			if found := addresses(t, l.out.Bytes()); len(found) != count {
				t.Errorf("%s: %d results", method, len(found))
			}
		})
	}
}

// The filter selects the results that are written. Answers that it rejects are still counted.
func TestFilteredResults(t *testing.T) {
	l := newLab(t)
	o := l.options
	o.Probe.Kind, o.Probe.Ports, o.Fields = probe.SYN, []uint16{9}, []probe.Field{probe.FieldAnswer}
	var err error
	if o.Filter, err = probe.ParseFilter("answer=reset address=10.200.1.0/24"); err != nil {
		t.Fatal(err)
	}
	sum, err := Run(t.Context(), o)
	if err != nil || sum.Answers[probe.Reset] != count {
		t.Errorf("%+v, %v", sum, err)
	}
	found := addresses(t, l.out.Bytes())
	for a := range found {
		if !strings.HasPrefix(a, "10.200.1.") {
			t.Errorf("a result for %s", a)
		}
	}
	if len(found) != 256 {
		t.Errorf("%d results", len(found))
	}
}
