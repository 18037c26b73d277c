//go:build linux

package filter

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"loam/internal/netns"
	"loam/link/match"
	"loam/wire"
)

func TestMain(m *testing.M) { netns.Main(m) }

// taken is the verdict of the test programs for a frame that matches. It only has to differ from the verdict with
// which the hook passes a frame to the kernel.
const taken = 3

// hooks are the hooks of the program types under test.
var hooks = map[ebpf.ProgramType]Hook{ebpf.XDP: XDP, ebpf.SchedCLS: TC}

// judge loads the program for rules and returns a function that runs it on a frame.
func judge(t testing.TB, kind ebpf.ProgramType, rules []match.Rule) func(b []byte) bool {
	t.Helper()
	netns.Need(t)
	code, err := Assemble(hooks[kind], rules, asm.Instructions{asm.Mov.Imm(asm.R0, taken), asm.Return()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: kind, Instructions: code, License: "BSD"})
	if err != nil {
		var verifier *ebpf.VerifierError
		if errors.As(err, &verifier) {
			t.Fatalf("%+v: %+v", rules, verifier)
		}
		t.Fatalf("%+v: %v", rules, err)
	}
	t.Cleanup(func() { p.Close() })
	return func(b []byte) bool {
		verdict, _, err := p.Test(b)
		if err != nil {
			t.Fatal(err)
		}
		return verdict == taken
	}
}

// pick returns one of a few values at random. Few values make rules and frames match often.
func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func randomRule(rng *rand.Rand) (r match.Rule) {
	prefix := func() netip.Prefix {
		if rng.IntN(2) == 0 {
			return netip.Prefix{}
		}
		if rng.IntN(2) == 0 {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(rng.IntN(4))}), pick(rng, 0, 1, 23, 24, 31, 32))
		}
		a := netip.MustParseAddr("2001:db8::").As16()
		a[15] = byte(rng.IntN(4))
		return netip.PrefixFrom(netip.AddrFrom16(a), pick(rng, 0, 3, 32, 33, 64, 127, 128))
	}
	r.EtherType = pick[wire.EtherType](rng, 0, 0, 0, wire.TypeIPv4, wire.TypeIPv6, wire.TypeARP)
	r.Protocol = pick[wire.Protocol](rng, 0, 0, wire.ProtoTCP, wire.ProtoUDP, wire.ProtoICMP, wire.ProtoICMPv6)
	r.Remote, r.Local = prefix(), prefix()
	if rng.IntN(2) == 0 {
		r.Ports.First = uint16(rng.IntN(3))
		r.Ports.Last = r.Ports.First + uint16(rng.IntN(3))
	}
	if rng.IntN(2) == 0 {
		r = randomICMP(rng, r)
	}
	return r
}

// randomICMP makes the rule match ICMP messages. Mostly it sets no other field of the transport
// header.
func randomICMP(rng *rand.Rand, r match.Rule) match.Rule {
	r.Ports = pick(rng, match.Ports{}, match.Ports{}, match.Ports{}, r.Ports)
	r.Protocol = pick(rng, wire.ProtoICMP, wire.ProtoICMP, wire.ProtoICMPv6, wire.ProtoICMPv6, wire.ProtoUDP)
	r.ICMP.Kind = pick(rng, match.EchoReply, match.Quote, match.Quote)
	r.ICMP.ID = uint16(rng.IntN(2))
	r.ICMP.Quoted = pick(rng, wire.ProtoICMP, wire.ProtoICMPv6, wire.ProtoTCP)
	r.ICMP.Ports = match.Ports{Last: uint16(rng.IntN(3))}
	return r
}

// randomMessage writes an ICMP message that may quote a packet.
func randomMessage(rng *rand.Rand, b []byte, is4 bool) {
	b[0] = byte(pick(rng, wire.ICMPv6EchoReply, wire.ICMPv6Unreachable, wire.ICMPv6Echo))
	if is4 {
		b[0] = byte(pick(rng, wire.ICMPv4EchoReply, wire.ICMPv4Unreachable, wire.ICMPv4TimeExceeded, wire.ICMPv4Echo))
	}
	binary.BigEndian.PutUint16(b[4:], uint16(rng.IntN(2)))
	q := b[8:]
	transport := q[wire.IPv6Len:]
	if is4 {
		q[0] = pick[byte](rng, 0x45, 0x45, 0x45, 0x46, 0x65)
		q[9] = byte(pick(rng, wire.ProtoICMP, wire.ProtoTCP))
		copy(q[12:], []byte{192, 0, 2, byte(rng.IntN(4))})
		transport = q[wire.IPv4MinLen:]
	} else {
		q[0], q[6] = pick[byte](rng, 0x60, 0x6f, 0x40), byte(pick(rng, wire.ProtoICMPv6, wire.ProtoTCP))
		copy(q[8:], []byte{0x20, 1, 0x0d, 0xb8})
		q[23] = byte(rng.IntN(4))
	}
	binary.BigEndian.PutUint16(transport, uint16(rng.IntN(4)))
	if rng.IntN(2) == 0 {
		transport[0] = byte(pick(rng, wire.ICMPv6Echo, wire.ICMPv6EchoReply))
		if is4 {
			transport[0] = byte(pick(rng, wire.ICMPv4Echo, wire.ICMPv4EchoReply))
		}
	}
	binary.BigEndian.PutUint16(transport[4:], uint16(rng.IntN(2)))
}

// randomFrame returns a packet that may have options, be a fragment, or be truncated. It is long
// enough for the kernel to run a test program on it.
func randomFrame(rng *rand.Rand) []byte {
	b := make([]byte, 160)
	binary.BigEndian.PutUint16(b[12:], uint16(pick(rng, wire.TypeIPv4, wire.TypeIPv6, wire.TypeARP)))
	p := b[wire.EthernetLen:]
	transport := wire.IPv6Len
	if binary.BigEndian.Uint16(b[12:]) == uint16(wire.TypeIPv4) {
		words := pick(rng, 5, 5, 5, 4, 6, 15)
		p[0], transport = byte(0x40|words), words*4
		binary.BigEndian.PutUint16(p[6:], pick[uint16](rng, 0, 0, 0x4000, 0x2000, 7))
		p[9] = byte(pick(rng, wire.ProtoTCP, wire.ProtoUDP, wire.ProtoICMP))
		copy(p[12:], []byte{192, 0, 2, byte(rng.IntN(4)), 192, 0, byte(2 + rng.IntN(2)), byte(rng.IntN(4))})
	} else {
		p[0], p[6] = 0x60, byte(pick(rng, wire.ProtoTCP, wire.ProtoUDP, wire.ProtoICMPv6))
		for _, at := range []int{8, 24} {
			copy(p[at:], []byte{0x20, 1, 0x0d, 0xb8})
			p[at+15] = byte(rng.IntN(4))
		}
	}
	binary.BigEndian.PutUint16(p[transport+2:], uint16(rng.IntN(6)))
	if is4 := p[0]>>4 == 4; is4 && p[9] == byte(wire.ProtoICMP) || !is4 && p[6] == byte(wire.ProtoICMPv6) {
		randomMessage(rng, p[transport:], is4)
	}
	return b[:pick(rng, len(b), len(b), wire.EthernetLen+rng.IntN(130))]
}

// For every frame, the program that is generated from rules gives the same verdict as package match.
func TestProgramAgreesWithMatch(t *testing.T) {
	for kind := range hooks {
		t.Run(kind.String(), func(t *testing.T) { compare(t, kind) })
	}
}

func compare(t *testing.T, kind ebpf.ProgramType) {
	rng := rand.New(rand.NewPCG(7, 1))
	agreed := 0
	for range 150 {
		rules := make([]match.Rule, rng.IntN(4))
		for i := range rules {
			rules[i] = randomRule(rng)
		}
		says := judge(t, kind, rules)
		for range 60 {
			b := randomFrame(rng)
			if kind == ebpf.SchedCLS && len(b) < wire.EthernetLen+wire.IPv6Len {
				continue // the kernel tests no program with a frame that lacks a complete header
			}
			want := match.Any(rules, b)
			if want {
				agreed++
			}
			if got := says(b); got != want {
				t.Fatalf("%+v\n% x:\nthe program says %v, package match %v", rules, b, got, want)
			}
		}
	}
	if agreed < 1000 {
		t.Errorf("only %d frames agreed with any rule: the test shows little", agreed)
	}
}

// The maximum number of rules can be loaded, and one more is rejected.
func TestManyRules(t *testing.T) {
	rules := make([]match.Rule, maxRules)
	for i := range rules {
		rules[i] = match.Rule{Remote: netip.MustParsePrefix("2001:db8::/128"), Local: netip.MustParsePrefix("2001:db8::1/128"), Ports: match.Port(uint16(i + 1))}
	}
	says := judge(t, ebpf.XDP, rules)
	b := make([]byte, 80)
	binary.BigEndian.PutUint16(b[12:], uint16(wire.TypeIPv6))
	p := b[wire.EthernetLen:]
	p[0], p[6] = 0x60, byte(wire.ProtoUDP)
	copy(p[8:], rules[0].Remote.Addr().AsSlice())
	copy(p[24:], rules[0].Local.Addr().AsSlice())
	for port, want := range map[uint16]bool{1: true, maxRules: true, maxRules + 1: false} {
		binary.BigEndian.PutUint16(p[wire.IPv6Len+2:], port)
		if got := says(b); got != want {
			t.Errorf("port %d: %v", port, got)
		}
	}
	if _, err := Assemble(XDP, append(rules, match.Rule{}), nil); err == nil {
		t.Error("one rule too many was taken")
	}
}
