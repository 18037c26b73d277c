//go:build linux

package replay

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"loam/gen"
	"loam/gen/frame"
	"loam/gen/pace"
	"loam/wire"
)

func addressMaps(t testing.TB, list ...string) (all []AddressMap) {
	t.Helper()
	for _, s := range list {
		m, err := ParseAddressMap(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func portMaps(t testing.TB, list ...string) (all []PortMap) {
	t.Helper()
	for _, s := range list {
		m, err := ParsePortMap(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// template returns the frame of a template.
func template(t testing.TB, text string) []byte {
	t.Helper()
	tpl, err := frame.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := frame.Compile(tpl, frame.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, p.MaxLen())
	return b[:p.Filler(0, 1).Next(b)]
}

// A rewritten frame equals the frame of a template with the new addresses and ports, including its checksums.
func TestRewriteEqualsTemplate(t *testing.T) {
	r := Rewrite{
		Src: wire.MAC{2, 0, 0, 0, 0, 7}, Dst: wire.MAC{2, 0, 0, 0, 0, 8},
		Addresses: addressMaps(t, "192.0.2.0/24=10.0.0.0/8", "2001:db8::/32=fd00::/16", "10.9.9.9=10.8.8.8"),
		Ports:     portMaps(t, "1024-1033=2000-2059", "80=8080"),
	}
	const macs = "eth src=02:00:00:00:00:07 dst=02:00:00:00:00:08; "
	for _, c := range []struct{ before, first, fourth string }{
		{"ip src=192.0.2.9 dst=10.9.9.9; udp sport=1025 dport=80; payload text=x",
			"ip src=10.0.0.9 dst=10.8.8.8; udp sport=2001 dport=8080; payload text=x",
			"ip src=10.0.3.9 dst=10.8.8.8; udp sport=2031 dport=8080; payload text=x"},
		{"vlan id=7; ip src=192.0.2.9 dst=203.0.113.1; tcp sport=443 dport=1033 seq=9",
			"vlan id=7; ip src=10.0.0.9 dst=203.0.113.1; tcp sport=443 dport=2009 seq=9",
			"vlan id=7; ip src=10.0.3.9 dst=203.0.113.1; tcp sport=443 dport=2039 seq=9"},
		{"ip6 src=2001:db8:1::5 dst=2001:db9::1; udp sport=7 dport=80",
			"ip6 src=fd00:0:1::5 dst=2001:db9::1; udp sport=7 dport=8080",
			"ip6 src=fd00:3:1::5 dst=2001:db9::1; udp sport=7 dport=8080"},
		{"ip6 src=2001:db8::1 dst=2001:db8::2; icmp6 id=80",
			"ip6 src=fd00::1 dst=fd00::2; icmp6 id=80",
			"ip6 src=fd00:3::1 dst=fd00:3::2; icmp6 id=80"},
		{"ip src=192.0.2.1; icmp id=80", "ip src=10.0.0.1 dst=10.0.0.2; icmp id=80", "ip src=10.0.3.1 dst=10.0.3.2; icmp id=80"},
		{"arp spa=192.0.2.7 tpa=10.9.9.9", "arp spa=10.0.0.7 tpa=10.8.8.8", "arp spa=10.0.3.7 tpa=10.8.8.8"},
		{"ip src=192.0.2.1 dst=192.0.2.2; udp sport=1 dport=2 checksum=0", "ip src=10.0.0.1 dst=10.0.0.2; udp sport=1 dport=2 checksum=0", "ip src=10.0.3.1 dst=10.0.3.2; udp sport=1 dport=2 checksum=0"},
	} {
		for loop, want := range map[uint64]string{0: c.first, 3: c.fourth} {
			got := template(t, "eth; "+c.before)
			r.Apply(got, loop)
			if !bytes.Equal(got, template(t, macs+want)) {
				t.Errorf("%s in loop %d\n% x\nwant %s\n% x", c.before, loop, got, want, template(t, macs+want))
			}
		}
	}
}

// A fragment other than the first has no ports. Its payload is not changed.
func TestRewriteOfFragments(t *testing.T) {
	r := Rewrite{Addresses: addressMaps(t, "192.0.2.1=10.0.0.1"), Ports: portMaps(t, "0-65535=0-65535")}
	got := template(t, "eth; ip src=192.0.2.1 proto=17 frag=9; payload hex=0400000900080000")
	r.Apply(got, 0)
	if want := template(t, "eth; ip src=10.0.0.1 proto=17 frag=9; payload hex=0400000900080000"); !bytes.Equal(got, want) {
		t.Errorf("% x\nwant\n% x", got, want)
	}
}

// A map assigns a block of new addresses to each loop over the capture. When all blocks are used, the first block is
// used again.
func TestMapsStartAgain(t *testing.T) {
	m := addressMaps(t, "10.0.0.0/30=10.1.0.0/29")[0]
	p := portMaps(t, "5-6=100-104")[0]
	for loop, want := range []string{"10.1.0.2 101", "10.1.0.6 103", "10.1.0.2 101"} {
		a, _ := m.of(netip.MustParseAddr("10.0.0.2"), uint64(loop))
		port, _ := p.of(6, uint64(loop))
		if got := fmt.Sprint(a, port); got != want {
			t.Errorf("loop %d: %s, want %s", loop, got, want)
		}
	}
	if _, ok := m.of(netip.MustParseAddr("10.0.0.4"), 0); ok {
		t.Error("an address outside of the map is moved")
	}
}

func TestBadMaps(t *testing.T) {
	for s, want := range map[string]string{
		"10.0.0.1":              "no =",
		"10.0.0.0/8=10.0.0.0/9": "no room",
		"10.0.0.1=::1":          "one side is IPv4",
		"x=10.0.0.1":            "not an address",
	} {
		if _, err := ParseAddressMap(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", s, err)
		}
	}
	for s, want := range map[string]string{"80": "no =", "1-3=5-6": "no room", "9-8=1": "not a port", "1=70000": "not a port"} {
		if _, err := ParsePortMap(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// Survey decides by the rewritten address of a destination whether it is public.
func TestSurveyOfRewritten(t *testing.T) {
	for to, want := range map[string]string{"10.0.0.0/8": "", "8.0.0.0/8": "8.0.0.0/8", "8.8.8.8": "8.8.8.8"} {
		r := Rewrite{Addresses: addressMaps(t, "192.0.2.2="+to)}
		a := netip.MustParseAddr("192.0.2.2")
		if got := r.reach(a); want != "" && !strings.HasPrefix(got.String(), want) || want == "" && got.String() != "10.0.0.0/8" {
			t.Errorf("%s: %v", to, got)
		}
	}
}

// A capture is sent again until the time is over. Each loop uses its own blocks of the maps.
func TestReplayByTime(t *testing.T) {
	file := capture(t, "pcap", 10, 0)
	r := &recorder{}
	rate, _ := pace.ParseRate("2kpps")
	rep, err := Run(t.Context(), Config{Open: opener(file), Sender: r, Rate: rate, Time: 50 * time.Millisecond, MeanSize: 100})
	if err != nil || len(r.frames) <= 10 || rep.Elapsed < 50*time.Millisecond || len(r.frames) > 101 {
		t.Errorf("%d frames in %v, %v", len(r.frames), rep.Elapsed, err)
	}
}

// The speed of a capture, and then its rate, are changed while it is sent. A capture that would otherwise take an hour
// ends soon.
func TestReplayFollowsTheControl(t *testing.T) {
	r := &recorder{}
	c := gen.NewControl()
	step := 0
	rep, err := Run(t.Context(), Config{
		Open: opener(capture(t, "pcap", 100, 36_000)), Sender: r, Speed: 1, Loops: 2, Control: c, Interval: 5 * time.Millisecond,
		Limit: func(pps float64) error {
			if pps > 50_000 {
				return fmt.Errorf("%v a second is too much", pps)
			}
			return nil
		},
		Observe: func(gen.Sample) {
			var err error
			switch step++; step {
			case 1:
				err = c.Scale(0)
			case 2:
				err = c.Scale(1000)
			case 3:
				if err := c.SetRate("", pace.Rate{PerSecond: 60_000}); err == nil {
					t.Error("a rate above the limit is accepted")
				}
				err = c.SetRate("capture", pace.Rate{PerSecond: 20})
			}
			if err != nil {
				t.Error(err)
			}
		},
	})
	if err != nil || len(r.frames) != 200 || !rep.Changed || rep.Streams[0].Asked != "20pps" {
		t.Errorf("%d frames, %+v, %v", len(r.frames), rep.Streams[0], err)
	}
}

// FuzzRewrite checks that any frame is rewritten without a panic, and that undoing the maps restores it.
func FuzzRewrite(f *testing.F) {
	for _, text := range []string{"eth; ip src=10.0.0.1; udp", "eth; vlan; ip6 src=2001:db8::1; tcp", "eth; arp spa=10.0.0.1", "eth; ip6 proto=44; payload hex=1100000000000001"} {
		f.Add(template(f, text))
	}
	there := Rewrite{Addresses: addressMaps(f, "10.0.0.0/8=20.0.0.0/8", "20.0.0.0/8=10.0.0.0/8", "2000::/16=3000::/16", "3000::/16=2000::/16"), Ports: portMaps(f, "0-32767=32768-65535", "32768-65535=0-32767")}
	f.Fuzz(func(t *testing.T, b []byte) {
		twice := bytes.Clone(b)
		there.Apply(twice, 0)
		there.Apply(twice, 0)
		for i := range b { // a checksum of 0 and a checksum of 0xffff have the same meaning
			if b[i] != twice[i] && !(b[i] == 0 && twice[i] == 0xff || b[i] == 0xff && twice[i] == 0) {
				t.Fatalf("% x\nbecame\n% x", b, twice)
			}
		}
	})
}
