package measure

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"loam/wire"
)

func TestTagFitsTheSmallestFrame(t *testing.T) {
	const payload = 64 - 4 - wire.EthernetLen - wire.IPv4MinLen - wire.UDPLen
	if TagLen != payload {
		t.Errorf("a tag has %d bytes, the payload of a 64-byte UDP frame %d", TagLen, payload)
	}
}

func TestTagRoundTrip(t *testing.T) {
	for _, tag := range []Tag{{}, {Run: 65535, Stream: 65535, Sequence: math.MaxUint32, Sent: mask48}, {1, 2, 3, 4}} {
		b := bytes.Repeat([]byte{0xee}, TagLen+1)
		tag.Put(b)
		if got, ok := ParseTag(b); !ok || got != tag {
			t.Errorf("%+v became %+v, %v", tag, got, ok)
		}
		if sum := wire.Sum(b[:TagLen], 0); sum != 0xffff {
			t.Errorf("the words of a tag add up to %#x: it changes the checksum around it", sum)
		}
		for i := range TagLen {
			b[i] ^= 4
			if got, ok := ParseTag(b); ok {
				t.Errorf("a bit of byte %d flipped: %+v", i, got)
			}
			b[i] ^= 4
		}
	}
	if _, ok := ParseTag(make([]byte, TagLen)); ok {
		t.Error("zeros are no tag")
	}
}

// The time of sending in a tag has a limited number of bits and wraps every 78 hours, which does not affect shorter
// differences.
func TestSinceOverTheWrap(t *testing.T) {
	for _, sent := range []int64{0, mask48 - 5, 1<<50 + 7, time.Now().UnixNano()} {
		for _, d := range []int64{0, 10, int64(38 * time.Hour), -1000} {
			if got := (Tag{Sent: sent & mask48}).Since(sent + d); got != d {
				t.Errorf("sent at %d: %d ns ago, want %d", sent, got, d)
			}
		}
	}
}

func arrive(numbers ...uint64) *Tracker {
	t := NewTracker()
	for _, n := range numbers {
		t.Arrive(0, Tag{Sequence: uint32(n)}, 64)
	}
	return t
}

func TestCounting(t *testing.T) {
	for _, test := range []struct {
		name                                     string
		numbers                                  []uint64
		lost, duplicates, reordered, extent, old uint64
	}{
		{"in order", []uint64{0, 1, 2, 3}, 0, 0, 0, 0, 0},
		{"one lost", []uint64{0, 2, 3}, 1, 0, 0, 0, 0},
		{"the first not seen", []uint64{2, 3}, 0, 0, 0, 0, 0},
		{"the first late", []uint64{2, 3, 1}, 0, 0, 1, 2, 0},
		{"one twice", []uint64{0, 1, 1, 2}, 0, 1, 0, 0, 0},
		{"late by one", []uint64{0, 2, 1, 3}, 0, 0, 1, 1, 0},
		{"late by three", []uint64{0, 2, 3, 4, 1, 5}, 0, 0, 1, 3, 0},
		// Frame 4 arrives after three higher numbers (5, 7, 8). Frame 6 arrives after three numbers that follow its gap
		// (7, 8, 4).
		{"late behind two gaps", []uint64{1, 2, 3, 5, 7, 8, 4, 6}, 0, 0, 2, 3, 0},
		{"late and twice", []uint64{0, 2, 1, 1, 2}, 0, 2, 1, 1, 0},
		{"a duplicate does not count in the extent", []uint64{0, 2, 2, 2, 1}, 0, 2, 1, 1, 0},
		{"before the window", []uint64{5, 5 + windowSize, 5}, windowSize - 1, 0, 0, 0, 1},
		{"far ahead", []uint64{0, 10 * windowSize, 10*windowSize - 1}, 10*windowSize - 2, 0, 1, 1, 0},
	} {
		tr := arrive(test.numbers...)
		s := tr.Stats()
		if s.Lost(s.Expected) != test.lost || s.Duplicates != test.duplicates || s.Reordered != test.reordered || s.Ancient != test.old {
			t.Errorf("%s: %+v, lost %d", test.name, s, s.Lost(s.Expected))
		}
		if got := uint64(tr.Extents().Max()); got != test.extent {
			t.Errorf("%s: the largest extent is %d, want %d", test.name, got, test.extent)
		}
	}
}

// slowOrder is a literal implementation of RFC 4737: it compares every arrival with all earlier ones, after
// removing duplicates.
func slowOrder(numbers []uint64) (reordered uint64, extents []int64) {
	var unique []uint64
	for _, s := range numbers {
		if slices.Contains(unique, s) {
			continue
		}
		unique = append(unique, s)
		i := len(unique) - 1
		if j := slices.IndexFunc(unique[:i], func(earlier uint64) bool { return earlier > s }); j >= 0 {
			reordered++
			extents = append(extents, int64(i-j))
		}
	}
	return reordered, extents
}

func TestOrderAgreesWithTheSlowOne(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		var numbers []uint64
		for i := range uint64(200) {
			numbers = append(numbers, i+r.Uint64N(1+r.Uint64N(20)))
		}
		tr := arrive(numbers...)
		reordered, extents := slowOrder(numbers)
		sum := int64(0)
		for _, e := range extents {
			sum += e
		}
		h, got := tr.Extents(), int64(0)
		for _, bar := range h.Distribution() {
			got += bar.Count * bar.To
		}
		if tr.Stats().Reordered != reordered || h.TotalCount() != int64(len(extents)) || got != sum {
			t.Fatalf("%v: reordered %d with extents of %d together, want %d and %d", numbers, tr.Stats().Reordered, got, reordered, sum)
		}
	}
}

// The jitter follows RFC 3550 section 6.4.1: J += (|D| - J)/16.
func TestJitterAndLatency(t *testing.T) {
	tr := NewTracker()
	for i, transit := range []int64{100, 100, 260, 100} {
		now := int64(i) * 1000
		tr.Arrive(now+transit, Tag{Sequence: uint32(i), Sent: now}, 64)
	}
	if got := tr.Jitter(); got != 19 { // the transit time changes twice by 160 ns: J = 160/16 = 10, then J = 10 + (160-10)/16 = 19.4
		t.Errorf("jitter %d ns, want 19", got)
	}
	h := tr.Latency()
	if h.TotalCount() != 4 || h.Min() != 100 || h.ValueAtQuantile(50) != 100 || h.Max() != 260 {
		t.Errorf("latency: %d values from %d to %d", h.TotalCount(), h.Min(), h.Max())
	}
	tr.Arrive(0, Tag{Sequence: 9, Sent: 5}, 64)
	if s := tr.Stats(); s.Negative != 1 || h.TotalCount() != 4 {
		t.Errorf("a frame from the future: %+v", s)
	}
}

func TestMeasuringAllocatesNothing(t *testing.T) {
	tr, b, n := NewTracker(), make([]byte, TagLen), uint64(0)
	if a := testing.AllocsPerRun(1000, func() {
		Tag{1, 2, uint32(n) ^ 1, int64(n)}.Put(b)
		tag, _ := ParseTag(b)
		tr.Arrive(int64(n)+500, tag, 64)
		n++
	}); a != 0 {
		t.Errorf("%v allocations a frame", a)
	}
}

func FuzzTag(f *testing.F) {
	b := make([]byte, TagLen)
	Tag{1, 2, 3, 4}.Put(b)
	f.Add(b, uint64(4))
	f.Fuzz(func(t *testing.T, b []byte, first uint64) {
		tag, ok := ParseTag(b)
		if !ok {
			return
		}
		again := make([]byte, TagLen)
		tag.Put(again)
		// The bytes are not compared, because a checksum of zero can be encoded in two ways.
		if got, ok := ParseTag(again); !ok || got != tag {
			t.Fatalf("% x became % x", b, again)
		}
		tr := arrive(first, uint64(tag.Sequence), uint64(tag.Sequence), 0)
		if s := tr.Stats(); s.Received != 4 || s.Unique+s.Duplicates+s.Ancient != 4 {
			t.Fatalf("%+v", s)
		}
	})
}

// A sink that starts late does not count earlier frames as lost, and does count later losses. This holds even if
// numbers wrap in between or frames are late across the wrap.
func TestReceiverStartsLate(t *testing.T) {
	for _, first := range []uint64{1000, 1<<32 - 3} {
		tr := arrive(first+2, first, first+5, first+3, first+6)
		s := tr.Stats()
		if lost := s.Lost(s.Expected); lost != 2 || s.Before != first || s.Reordered != 2 || s.Unique != 5 {
			t.Errorf("from %d: %d lost, %+v", first, lost, s)
		}
	}
	far := arrive(7, 7+1<<32-1<<21) // a jump at which nearly all numbers are missing
	if s := far.Stats(); s.Lost(s.Expected) != 1<<32-1<<21-1 || s.Ancient != 0 {
		t.Errorf("%+v", s)
	}
}
