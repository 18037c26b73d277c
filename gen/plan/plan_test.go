package plan

import (
	"strings"
	"testing"
	"time"

	"loam/gen"
)

// example contains every field that a plan, a file that describes streams, can have.
const example = `# two streams
interface: eth0
method: packet
queues: 2
batch: 32
rx: eth1
next-hop: 02:00:00:00:00:02
qdisc: true
seed: 7
streams:
  - name: voice
    template: eth; ip dst=10.0.0.2; udp dport=5060
    size: 64-128
    rate: 10kpps
    flows: 10
    vary:
      ip.src: 10.1.0.0/16
      ip.ttl: random
  - name: bulk
    template: |
      eth
      vlan id=7
      ip6 dst=2001:db8::2
      tcp flags=A
    size: imix:128=7,594=4,1518=1
    rate: 1Gbps
    count: 1000000
    bare: true
steps:
  - time: 10s
  - time: 500ms
    scale: 50%
`

func TestParse(t *testing.T) {
	p, err := Parse([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if p.Interface != "eth0" || p.Method != "packet" || p.Queues != 2 || p.Batch != 32 || p.RX != "eth1" || !p.Qdisc || p.Public ||
		p.NextHop.String() != "02:00:00:00:00:02" || p.Time != 0 {
		t.Errorf("%+v", p.Config)
	}
	if len(p.Steps) != 2 || p.Steps[0] != (gen.Step{Time: 10 * time.Second, Scale: 1}) || p.Steps[1] != (gen.Step{Time: 500 * time.Millisecond, Scale: 0.5}) {
		t.Errorf("%+v", p.Steps)
	}
	a, b := p.Streams[0], p.Streams[1]
	if a.Name != "voice" || a.Rate.String() != "10kpps" || a.Flows != 10 || a.Seed != 7 || a.Sizes.Max() != 128 ||
		a.Template.String() != "eth; ip dst=10.0.0.2 src=10.1.0.0/16 ttl=random; udp dport=5060" {
		t.Errorf("%+v, %v", a, a.Template)
	}
	if b.Count != 1000000 || !b.Bare || b.Rate.String() != "1Gbps" || b.Template.String() != "eth; vlan id=7; ip6 dst=2001:db8::2; tcp flags=A" {
		t.Errorf("%+v, %v", b, b.Template)
	}
}

// Each mistake is reported in one line with its line in the file.
func TestMistakes(t *testing.T) {
	replace := func(old, now string) string {
		if !strings.Contains(example, old) {
			t.Fatalf("%q is not in the example", old)
		}
		return strings.Replace(example, old, now, 1)
	}
	for _, test := range []struct{ text, want string }{
		{"", "the file is to hold one document"},
		{"interface: [", "line 1: "},
		{"interface: eth0\n", "there are no streams"},
		{replace("interface: eth0", "interfaze: eth0"), `line 2: unknown field "interfaze"`},
		{replace("interface: eth0\n", ""), "no interface is given: interface: NAME"},
		{replace("queues: 2", "queues: many"), "line 4: "},
		{replace("method: packet", "method: smoke"), `line 3: method "smoke": there is no such method; allowed: net, `},
		{replace("next-hop: 02:00:00:00:00:02", "next-hop: me"), `line 7: "me" is no address of Ethernet`},
		{replace("rate: 10kpps", "rate: fast"), `line 14: "fast" is not a rate; allowed: max; `},
		{replace("    rate: 10kpps\n", ""), "line 11: the stream has no rate"},
		{replace("size: imix:128=7,594=4,1518=1", "size: huge"), `line 25: size: "huge" is not a size; `},
		{replace("udp dport=5060", "udp dport=70000"), "line 12: udp.dport: "},
		{replace("eth; ip dst", "ethx; ip dst"), "line 12: ethx: there is no such layer"},
		{replace("ip.ttl", "ip.tll"), "line 17: ip.tll: there is no such field in IPv4"},
		{replace("time: 10s", "time: soon"), `line 30: "soon" is no time; write it as 500ms, 10s or 2m`},
		{replace("scale: 50%", "scale: half"), `line 32: "half" is no part of a rate; write it as 50%`},
		{replace("seed: 7", "seed: 7\ntime: 3s"), "line 10: there are steps, which have times of their own"},
		{strings.Repeat("#", MaxSize+1), "the file is longer than"},
	} {
		_, err := Parse([]byte(test.text))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

func TestRead(t *testing.T) {
	p, err := Read(strings.NewReader(example))
	if err != nil || len(p.Streams) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}

// FuzzParse checks that no file causes a panic and every error is of type *Error.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte("interface: &a eth0\nstreams: [{template: *a}]"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("steps:\n  - {time: 1s, scale: 1e400%}\n<<: {}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<14 {
			return // long texts are slow to parse and test nothing new
		}
		if _, err := Parse(text); err != nil {
			if _, ours := err.(*Error); !ours {
				t.Errorf("%T: %v", err, err)
			}
		}
	})
}

// An error about a value of the wrong type uses the terms of the file, not of Go.
func TestWrongKinds(t *testing.T) {
	for text, want := range map[string]string{
		"interface: lo\nqueues: many\nstreams: []": "line 2: queues is to be a number, and is text",
		"interface: lo\nqdisc: maybe\nstreams: []": "line 2: qdisc is to be true or false, and is text",
		"interface: lo\nstreams: 7":                "line 2: a sequence is wanted, and this is of the kind int",
	} {
		if _, err := Parse([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}
