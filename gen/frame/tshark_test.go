package frame_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loam/gen/frame"
	"loam/link"
	"loam/link/pipe"
	"loam/link/trace"
)

// templates are decoded by an independent program: tshark must find the layers of the template, report every
// checksum as good and give no warning.
var templates = map[string]string{ // template -> layers as tshark names them
	"eth dst=ff:ff:ff:ff:ff:ff; arp":                                  "eth:ethertype:arp",
	"eth src=random; ip src=10.0.0.0/8; udp":                          "eth:ethertype:ip:udp:data",
	"eth; arp op=2 tha=02:00:00:00:00:09":                             "eth:ethertype:arp",
	"eth; ip; payload fill=count":                                     "eth:ethertype:ip:data",
	"eth; ip src=10.0.0.0/8; icmp type=0 id=random; payload fill=1":   "eth:ethertype:ip:icmp:data",
	"eth; ip dst=10.0.0.0/8; udp sport=1024-65535":                    "eth:ethertype:ip:udp:data",
	"eth; ip; tcp sport=1024+1 seq=random; payload fill=2":            "eth:ethertype:ip:tcp:data",
	"eth; ip6 src=random:2001:db8::/32 flow=random; udp":              "eth:ethertype:ipv6:udp:data",
	"eth; ip6 dst=2001:db8::/64; icmp6 type=129 seq=0+1":              "eth:ethertype:ipv6:icmpv6:data",
	"eth; ip6; tcp sport=1024+1 flags=S":                              "eth:ethertype:ipv6:tcp:data",
	"eth; vlan id=1-4094 pcp=random; ip; udp":                         "eth:ethertype:vlan:ethertype:ip:udp:data",
	"eth; qinq id=7; vlan id=8; ip6; udp":                             "eth:ethertype:ieee8021ad:ethertype:vlan:ethertype:ipv6:udp:data",
	"eth; mpls label=16-1000; mpls label=2000 tc=random; ip; udp":     "eth:ethertype:mpls:ip:udp:data",
	"eth; mpls label=99; ip6; udp":                                    "eth:ethertype:mpls:ipv6:udp:data",
	"eth; ip; udp sport=49152-65535; vxlan vni=random; eth; ip; udp":  "eth:ethertype:ip:udp:vxlan:eth:ethertype:ip:udp:data",
	"eth; ip6; udp; vxlan; eth; vlan id=5; ip6; icmp6 type=129":       "eth:ethertype:ipv6:udp:vxlan:eth:ethertype:vlan:ethertype:ipv6:icmpv6:data",
	"eth; ip; udp sport=49152-65535; geneve vni=random; eth; ip; udp": "eth:ethertype:ip:udp:geneve:eth:ethertype:ip:udp:data",
	"eth; ip6; udp; geneve vni=7; ip6; tcp sport=42000+1 flags=S":     "eth:ethertype:ipv6:udp:geneve:ipv6:tcp:data",
	"eth; ip; udp; gtpu teid=random; ip src=10.0.0.0/8; udp":          "eth:ethertype:ip:udp:gtp:ip:udp:data",
	"eth; ip; udp; gtpu teid=1+1; ip6; tcp sport=40000+1 flags=S":     "eth:ethertype:ip:udp:gtp:ipv6:tcp:data",
	"eth; ip; gre; ip; udp":                                           "eth:ethertype:ip:gre:ip:udp:data",
	"eth; ip; gre checksum=auto key=1+1 seq=0+1; eth; ip; udp":        "eth:ethertype:ip:gre:eth:ethertype:ip:udp:data",
	"eth; ip6; gre key=7; ip6; tcp sport=30000+1":                     "eth:ethertype:ipv6:gre:ipv6:tcp:data",
	"eth; ip; sctp sport=1024+1 dport=9 tag=random; sctpdata tsn=1+1": "eth:ethertype:ip:sctp:data",
	"eth; ip6; sctp dport=9; sctpdata tsn=1+1 ppid=0":                 "eth:ethertype:ipv6:sctp:data",
	"eth; ip; udp; sctp tag=5; sctpdata tsn=1+1":                      "eth:ethertype:ip:udp:sctp:data",
	"eth; ip; ip; udp":  "eth:ethertype:ip:ip:udp:data",
	"eth; ip6; ip; udp": "eth:ethertype:ipv6:ip:udp:data",
}

// wrong lists templates of malformed frames. tshark must warn about them, which shows that the test detects warnings.
var wrong = []string{"eth; ip; udp checksum=1", "eth; ip; sctp checksum=1; sctpdata"}

const framesEach = 20

func TestTsharkDecodesEveryTemplate(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	path := filepath.Join(t.TempDir(), "frames.pcapng")
	all := append(slices.Sorted(maps.Keys(templates)), wrong...)
	write(t, all, path)
	out, err := exec.Command(tshark, "-n", "-r", path, "-T", "fields", "-E", "separator=|",
		"-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "sctp.checksum:CRC-32C",
		"-e", "frame.protocols", "-e", "_ws.expert.message", "-e", "_ws.malformed").Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, err.(*exec.ExitError).Stderr)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != framesEach*len(all) {
		t.Fatalf("tshark sees %d frames of %d", len(lines), framesEach*len(all))
	}
	for i, line := range lines {
		text := all[i/framesEach]
		layers, warning, _ := strings.Cut(line, "|")
		warning = strings.Trim(warning, "|")
		switch {
		case slices.Contains(wrong, text):
			if warning == "" {
				t.Errorf("tshark does not warn of the bad checksum of %s: this test shows nothing", text)
			}
		case headers(layers) != headers(templates[text]):
			t.Errorf("%s\ntshark sees %s, want %s", text, layers, templates[text])
		case warning != "" && !remark(warning):
			t.Errorf("%s: tshark warns: %s", text, warning)
		}
	}
}

// headers removes the payload from a list of layers, because tshark does not list an empty payload.
func headers(layers string) string { return strings.ReplaceAll(layers, ":data", "") }

// remark reports whether a message of tshark is only informative. One such message is that a SYN opens a connection.
func remark(s string) bool { return s == "Connection establish request (SYN): server port 9" }

// write writes frames of each template, in several sizes, to a pcapng file.
func write(t *testing.T, all []string, path string) {
	t.Helper()
	a, b := pipe.New(pipe.Config{Depth: framesEach * len(all)})
	defer b.Close()
	d, err := trace.Create(a, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range all {
		tm, err := frame.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		o := frame.Options{}
		if !tm.Has("arp") {
			if o.Sizes, err = frame.ParseSizes("imix:176=1,177=1,1400=1"); err != nil {
				t.Fatal(err)
			}
		}
		p, err := frame.Compile(tm, o)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		send(t, d.Queues()[0], p)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, q link.Queue, p *frame.Program) {
	t.Helper()
	f := p.Filler(0, 1)
	for range framesEach {
		fr := link.NewFrame(p.MaxLen())
		fr.Resize(f.Next(fr.Bytes()))
		if n, err := q.Send([]*link.Frame{fr}); n != 1 || err != nil {
			t.Fatalf("send: %d, %v", n, err)
		}
	}
}
