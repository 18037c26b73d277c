package wire

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// slowSum implements RFC 1071 section 1 word by word, without the optimizations of Sum.
func slowSum(b []byte, initial uint16) uint16 {
	sum := uint32(initial)
	for i := 0; i < len(b); i += 2 {
		word := uint32(b[i]) << 8
		if i+1 < len(b) {
			word |= uint32(b[i+1])
		}
		sum += word
		if sum > 0xffff {
			sum -= 0xffff // end-around carry
		}
	}
	return uint16(sum)
}

// sameSum compares in ones' complement arithmetic, where zero has two representations.
func sameSum(a, b uint16) bool { return a%0xffff == b%0xffff }

// The example of RFC 1071 section 3: the sum of these words is ddf2.
func TestSumOfTheRFCsExample(t *testing.T) {
	b := []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}
	if got := Sum(b, 0); got != 0xddf2 {
		t.Errorf("sum is %#04x, want 0xddf2", got)
	}
}

func TestSumAgreesWithTheSlowSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fill := map[string]func() byte{
		"random": func() byte { return byte(r.Uint32()) },
		"zeros":  func() byte { return 0 },
		"ones":   func() byte { return 0xff }, // words of all ones: every addition carries
		"mixed":  func() byte { return -byte(r.Uint32() & 1) },
	}
	for name, next := range fill {
		for n := range 600 {
			b := make([]byte, n)
			for i := range b {
				b[i] = next()
			}
			for _, initial := range []uint16{0, 1, 0x00ff, 0xff00, 0xffff, uint16(r.Uint32())} {
				got, want := Sum(b, initial), slowSum(b, initial)
				if !sameSum(got, want) {
					t.Fatalf("%s: sum of %d bytes onto %#04x is %#04x, want %#04x", name, n, initial, got, want)
				}
			}
		}
	}
}

// Zero has two representations in ones' complement arithmetic, 0 and 0xffff. Sum returns 0 only if everything added is
// zero. So a receiver compares the sum of a packet with 0xffff only.
func TestSumOfSomethingIsNotZero(t *testing.T) {
	b := make([]byte, 300)
	if got := Sum(b, 0); got != 0 {
		t.Errorf("sum of zeros is %#04x, want 0", got)
	}
	for n := 2; n <= len(b); n += 2 {
		clear(b)
		b[n-2], b[n-1] = 0xff, 0xff
		if got := Sum(b[:n], 0); got != 0xffff {
			t.Errorf("sum with one word ffff at %d is %#04x, want 0xffff", n-2, got)
		}
	}
}

func TestSumOfPieces(t *testing.T) {
	b := make([]byte, 257)
	for i := range b {
		b[i] = byte(i * 7)
	}
	want := Sum(b, 0)
	for cut := 0; cut <= len(b); cut += 2 {
		if got := Sum(b[cut:], Sum(b[:cut], 0)); got != want {
			t.Errorf("cut at %d: %#04x, want %#04x", cut, got, want)
		}
		if got := AddSums(Sum(b[cut:], 0), Sum(b[:cut], 0)); got != want {
			t.Errorf("AddSums, cut at %d: %#04x, want %#04x", cut, got, want)
		}
	}
}

func TestPseudoSum(t *testing.T) {
	v4 := [2]netip.Addr{netip.MustParseAddr("10.0.2.15"), netip.MustParseAddr("255.254.253.252")}
	v6 := [2]netip.Addr{netip.MustParseAddr("2001:db8::7"), netip.MustParseAddr("fe80::ffff:1")}
	for _, length := range []int{0, 8, 1480, 65535, 1 << 20} {
		// The encoded pseudo header: RFC 9293 figure 2, RFC 8200 section 8.1.
		b4 := append(v4[0].AsSlice(), v4[1].AsSlice()...)
		b4 = append(b4, 0, byte(ProtoTCP), byte(length>>8), byte(length))
		if length <= 65535 {
			if got, want := PseudoSum(ProtoTCP, v4[0], v4[1], length), slowSum(b4, 0); !sameSum(got, want) {
				t.Errorf("IPv4, length %d: %#04x, want %#04x", length, got, want)
			}
		}
		b6 := append(v6[0].AsSlice(), v6[1].AsSlice()...)
		b6 = append(b6, byte(length>>24), byte(length>>16), byte(length>>8), byte(length), 0, 0, 0, byte(ProtoTCP))
		if got, want := PseudoSum(ProtoTCP, v6[0], v6[1], length), slowSum(b6, 0); !sameSum(got, want) {
			t.Errorf("IPv6, length %d: %#04x, want %#04x", length, got, want)
		}
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte{}, uint16(0))
	f.Add([]byte{1}, uint16(0xffff))
	f.Add(make([]byte, 129), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, initial uint16) {
		if got, want := Sum(b, initial), slowSum(b, initial); !sameSum(got, want) {
			t.Fatalf("%#04x, want %#04x", got, want)
		}
	})
}

// The sizes are an IPv4 header, the smallest frame, an ordinary packet and the largest GSO frame. For
// comparison, the other benchmarks copy the same bytes and read them eight at a time, which is the lower
// bound for a sum in plain Go.
func BenchmarkSum(b *testing.B)  { benchmarkBytes(b, func(p, _ []byte) { sink += uint64(Sum(p, 0)) }) }
func BenchmarkCopy(b *testing.B) { benchmarkBytes(b, func(p, q []byte) { copy(q, p) }) }
func BenchmarkRead(b *testing.B) { benchmarkBytes(b, func(p, _ []byte) { sink += readWords(p) }) }

var sink uint64

func benchmarkBytes(b *testing.B, f func(p, q []byte)) {
	for _, n := range []int{20, 64, 1500, 65535} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p, q := make([]byte, n), make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				f(p, q)
			}
		})
	}
}

// readWords reads each whole word of b once, in four independent chains.
func readWords(b []byte) uint64 {
	var w, x, y, z uint64
	for len(b) >= 64 {
		p := (*[64]byte)(b)
		w += binary.LittleEndian.Uint64(p[0:]) ^ binary.LittleEndian.Uint64(p[32:])
		x += binary.LittleEndian.Uint64(p[8:]) ^ binary.LittleEndian.Uint64(p[40:])
		y += binary.LittleEndian.Uint64(p[16:]) ^ binary.LittleEndian.Uint64(p[48:])
		z += binary.LittleEndian.Uint64(p[24:]) ^ binary.LittleEndian.Uint64(p[56:])
		b = b[64:]
	}
	for len(b) >= 8 {
		w += binary.LittleEndian.Uint64(b)
		b = b[8:]
	}
	return w + x + y + z
}
