package frame

import (
	"strings"
	"testing"
)

// The error for a mistake contains the field's name and the allowed values.
func TestErrorsNameTheFieldAndWhatIsAllowed(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "template: it has no layers; allowed: for example: eth; ip; udp",
		"ip; udp":                            "ip: a frame begins with eth; allowed: eth; ip; ...",
		"eth; ipx":                           "ipx: there is no such layer; allowed: eth, vlan,",
		"eth; ip ttl=300":                    `ip.ttl: "300" is not a value; allowed: a number from 0 to 255`,
		"eth; ip src=10.0.0.256":             `ip.src: "10.0.0.256" is not a value; allowed: an IPv4 address`,
		"eth; ip src=2001:db8::/32":          `ip.src: "2001:db8::/32" is not a prefix; allowed: an IPv4 address`,
		"eth; ip6 src=10.0.0.1":              `ip6.src: "10.0.0.1" is not a value; allowed: an IPv6 address`,
		"eth src=02:00":                      `eth.src: "02:00" is not a value; allowed: a MAC address`,
		"eth; ip; udp dport=5-3":             `udp.dport: "5-3" is not a range from a low value to a high one`,
		"eth; ip; udp dport=5-9+0":           `udp.dport: "0" is not a step above 0`,
		"eth; ip; udp dport=5,":              `udp.dport: "" in the list is not a value`,
		"eth; ip; udp dport=":                `udp.dport: "" has no value`,
		"eth; ip; udp dport=random:":         `udp.dport: "random:" has no value`,
		"eth; ip; udp dport=random:5+1":      `udp.dport: START+STEP cannot be random`,
		"eth; ip; udp port=5":                "udp.port: there is no such field in UDP; allowed: sport, dport, len, checksum",
		"eth; ip; gre flags=1":               "gre.flags: there is no such field in GRE; allowed: type, checksum, key, seq",
		"eth; vlan; vlan pcp=8; ip":          `vlan[2].pcp: "8" is not a value; allowed: a number from 0 to 7`,
		"eth; ip; udp dport=1 dport=2":       "udp.dport: it is given twice",
		"eth; ip; arp":                       "arp: IPv4 cannot carry ARP for IPv4; allowed: ip, ip6, icmp, udp, tcp, sctp, gre, payload",
		"eth; arp; ip":                       "ip: ARP for IPv4 cannot carry IPv4; allowed: nothing behind arp",
		"eth; arp; payload":                  "payload: ARP for IPv4 cannot carry a payload",
		"eth; ip; icmp6":                     "icmp6: IPv4 cannot carry ICMP for IPv6",
		"payload":                            "payload: it must be the last layer, behind a header",
		"eth; payload; ip":                   "payload: it must be the last layer, behind a header",
		"eth; payload hex=abc":               `payload.hex: "abc" is not hexadecimal`,
		"eth; payload fill=256":              `payload.fill: "256" fills nothing; allowed: a number from 0 to 255, count, random`,
		"eth; payload words=x":               "payload.words: there is no such field in a payload; allowed: text=",
		"eth; ip ttl":                        `ip: "ttl" is not a setting; allowed: FIELD=PATTERN`,
		"eth; payload text=\"x":              "template: a quotation has no end",
		"eth; ip; tcp flags=SX":              `tcp.flags: "SX" is not a value; allowed: letters of FSRPAUECN`,
		"eth; ip6 src=::-8000::":             `ip6.src: the range "::-8000::" is too wide to count`,
		strings.Repeat("eth\n", MaxLayers+1): "template: there are more than 16 layers",
	} {
		tm, err := Parse(text)
		if err == nil {
			_, err = Compile(tm, Options{})
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

func TestParseReadsLinesCommentsAndQuotes(t *testing.T) {
	_, err := Parse("# a frame\neth src=02:00:00:00:00:07\n\n  ip ttl=3 ; udp # not a comment=1\n; payload text=\"a; \\\"b\\\"\"")
	if err == nil {
		t.Fatal("a comment must stand on a line of its own")
	}
	tm, err := Parse("# a frame\neth src=02:00:00:00:00:07\n\n  ip ttl=3 ;udp\r\npayload text=\"a; \\\"b\\\"\"")
	if err != nil {
		t.Fatal(err)
	}
	const want = `eth src=02:00:00:00:00:07; ip ttl=3; udp; payload text="a; \"b\""`
	if tm.String() != want {
		t.Errorf("got %s, want %s", tm, want)
	}
	if again, err := Parse(tm.String()); err != nil || again.String() != want {
		t.Errorf("again: %v, %v", again, err)
	}
}

func TestSetAndGet(t *testing.T) {
	tm, err := Parse("eth; vlan; vlan; ip; udp")
	if err != nil {
		t.Fatal(err)
	}
	for name, pattern := range map[string]string{"ip.src": "10.0.0.0/8", "vlan[2].id": "7", "udp.dport": "random"} {
		if err := tm.Set(name, pattern); err != nil || tm.Get(name) != pattern {
			t.Errorf("%s: %q, %v", name, tm.Get(name), err)
		}
	}
	copied := tm.Clone()
	if err := copied.Set("ip.src", "10.0.0.1"); err != nil || tm.Get("ip.src") != "10.0.0.0/8" {
		t.Errorf("a change of the copy changed the template: %v, %v", tm, err)
	}
	for name, want := range map[string]string{
		"ip":          "ip: it names no field; allowed: LAYER.FIELD such as ip.src, or vlan[2].id",
		"tcp.sport":   "tcp.sport: the template has no such layer; allowed: a field of eth, vlan, vlan, ip, udp",
		"vlan[3].id":  "vlan[3].id: the template has no such layer",
		"vlan[x].id":  "vlan[x].id: it names no field",
		"udp.colour":  "udp.colour: there is no such field in UDP",
		"vlan[0].pcp": "vlan[0].pcp: it names no field",
	} {
		if err := tm.Set(name, "1"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if tm, err = Parse("eth; ipx"); err != nil {
		t.Fatal(err)
	}
	if err := tm.Set("ip.dst", "10.0.0.1"); err == nil || !strings.HasPrefix(err.Error(), "ipx: there is no such layer") {
		t.Errorf("of a layer that nobody knows is said: %v", err)
	}
}

// FuzzTemplate checks that any template text is either rejected or produces frames that fit their slots, without a
// panic.
func FuzzTemplate(f *testing.F) {
	for _, text := range examples {
		f.Add(text, "imix", 0)
		f.Add(text, "", 14)
	}
	f.Add("eth; ip len=random checksum=random; udp", "64-1518", 42)
	f.Add("eth; ip src=::/0; gre seq=1+9223372036854775807", "random:64-65553", 0)
	f.Fuzz(func(t *testing.T, text, size string, skip int) {
		tm, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(tm.String()); err != nil || again.String() != tm.String() {
			t.Fatalf("%q became %q: %v", text, tm, err)
		}
		o := Options{Skip: max(0, min(skip, 100))}
		if size != "" {
			if o.Sizes, err = ParseSizes(size); err != nil {
				return
			}
		}
		p, err := Compile(tm, o)
		if err != nil {
			return
		}
		filler, slot := p.Filler(1, 3), make([]byte, p.MaxLen())
		for range 20 {
			if n := filler.Next(slot); n < 0 || n > len(slot) {
				t.Fatalf("%q: %d bytes in a slot of %d", text, n, len(slot))
			}
			filler.Body(slot)
		}
	})
}
