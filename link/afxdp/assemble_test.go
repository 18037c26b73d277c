//go:build linux

package afxdp

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

// taken is what a program of these tests returns for a frame that agrees: XDP_TX,
// as good as any that is not XDP_PASS.
const taken = 3

// judge loads the program of rules and returns what it says of a frame.
func judge(t testing.TB, rules []match.Rule) func(b []byte) bool {
	t.Helper()
	netns.Need(t)
	code, err := assemble(rules, asm.Instructions{asm.Mov.Imm(asm.R0, taken), asm.Return()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, Instructions: code, License: "BSD"})
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

// numbers are few, so that rules and frames often agree.
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
	r.Protocol = pick[wire.Protocol](rng, 0, 0, wire.ProtoTCP, wire.ProtoUDP, wire.ProtoICMP)
	r.Remote, r.Local = prefix(), prefix()
	if rng.IntN(2) == 0 {
		r.Ports.First = uint16(rng.IntN(3))
		r.Ports.Last = r.Ports.First + uint16(rng.IntN(3))
	}
	return r
}

// randomFrame makes a packet that may have options, be a fragment, or be cut off,
// but is as long as the kernel lets a program be tested with.
func randomFrame(rng *rand.Rand) []byte {
	b := make([]byte, 120)
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
		p[0], p[6] = 0x60, byte(pick(rng, wire.ProtoTCP, wire.ProtoUDP, wire.ProtoICMP))
		for _, at := range []int{8, 24} {
			copy(p[at:], []byte{0x20, 1, 0x0d, 0xb8})
			p[at+15] = byte(rng.IntN(4))
		}
	}
	binary.BigEndian.PutUint16(p[transport+2:], uint16(rng.IntN(6)))
	return b[:pick(rng, len(b), len(b), wire.EthernetLen+rng.IntN(90))]
}

// The program and package match are of one mind about every frame.
func TestProgramAgreesWithMatch(t *testing.T) {
	netns.Need(t)
	rng := rand.New(rand.NewPCG(7, 1))
	agreed := 0
	for range 150 {
		rules := make([]match.Rule, rng.IntN(4))
		for i := range rules {
			rules[i] = randomRule(rng)
		}
		says := judge(t, rules)
		for range 60 {
			b := randomFrame(rng)
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

// As many rules as there may be load, and one more is refused.
func TestManyRules(t *testing.T) {
	rules := make([]match.Rule, maxRules)
	for i := range rules {
		rules[i] = match.Rule{Remote: netip.MustParsePrefix("2001:db8::/128"), Local: netip.MustParsePrefix("2001:db8::1/128"), Ports: match.Port(uint16(i + 1))}
	}
	says := judge(t, rules)
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
	if _, err := assemble(append(rules, match.Rule{}), nil); err == nil {
		t.Error("one rule too many was taken")
	}
}
