package frame

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Frame sizes are counted as users and standards count them: they include the frame check sequence (FCS), so the
// smallest frame has 64 bytes. A Filler writes FCSLen bytes less.

const (
	// FCSLen is the size in bytes of the frame check sequence, which the hardware adds.
	FCSLen = 4
	// MinSize is the smallest Ethernet frame in bytes, FCS included.
	MinSize = 64
	// MaxSize is the largest frame size that Sizes accepts, in bytes: Ethernet header, IP packet of 65535 bytes, and
	// FCS.
	MaxSize = 65535 + 14 + FCSLen
	// WireOverhead is the number of bytes that a frame occupies on the wire in addition to its size: preamble, start of
	// frame and inter-frame gap (IEEE 802.3).
	WireOverhead = 20

	maxWeights = 4096 // maximum number of frames in a mix before it repeats
)

// Sizes is a sequence of frame sizes: a constant, a range or a mix. The zero value means the natural size of the
// template: its headers and its payload.
type Sizes struct {
	low, high int
	random    bool
	mix       []int // the sizes of a mix, in the order in which frames are sent
}

const sizesAllowed = "N, A-B, random:A-B, imix, or imix:SIZE=WEIGHT,..., with sizes from 64 to 65553 bytes, FCS included"

// FixedSize returns the constant size n in bytes, FCS included.
func FixedSize(n int) Sizes { return Sizes{low: n, high: n} }

// ParseSizes parses "64", "64-1518" (sizes in ascending order), "random:64-1518", "imix" (64, 594 and 1518 bytes in
// the proportion 7:4:1), or a custom mix such as "imix:64=7,594=4,1518=1".
func ParseSizes(s string) (Sizes, error) {
	wrong := &Error{Field: "size", Wrong: fmt.Sprintf("%q is not a size", s), Allowed: sizesAllowed}
	switch mix, isMix := strings.CutPrefix(s, "imix:"); {
	case s == "imix":
		return ParseSizes("imix:64=7,594=4,1518=1")
	case isMix:
		return parseMix(mix)
	}
	set, random := strings.CutPrefix(s, "random:")
	low, high, isRange := strings.Cut(set, "-")
	if !isRange {
		high = low
	}
	z := Sizes{random: random}
	var ok1, ok2 bool
	z.low, ok1 = parseSize(low)
	z.high, ok2 = parseSize(high)
	if !ok1 || !ok2 || z.low > z.high || random && !isRange {
		return Sizes{}, wrong
	}
	return z, nil
}

func parseSize(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= MinSize && n <= MaxSize
}

func parseMix(s string) (Sizes, error) {
	var sizes, weights []int
	total := 0
	for part := range strings.SplitSeq(s, ",") {
		size, weight, ok := strings.Cut(part, "=")
		n, okSize := parseSize(size)
		w, err := strconv.Atoi(weight)
		if !ok || !okSize || err != nil || w < 1 || w > maxWeights-total {
			return Sizes{}, &Error{Field: "size", Wrong: fmt.Sprintf("%q is not a part of a mix", part),
				Allowed: fmt.Sprintf("SIZE=WEIGHT, the weights at most %d together", maxWeights)}
		}
		sizes, weights, total = append(sizes, n), append(weights, w), total+w
	}
	return Sizes{low: minimum(sizes), high: maximum(sizes), mix: interleave(sizes, weights, total)}, nil
}

// interleave spreads each size evenly over the mix: each position gets the size that has so far occurred least,
// compared with its share.
func interleave(sizes, weights []int, total int) []int {
	credit := make([]int, len(sizes))
	mix := make([]int, 0, total)
	for range total {
		best := 0
		for i, w := range weights {
			credit[i] += w
			if credit[i] > credit[best] {
				best = i
			}
		}
		credit[best] -= total
		mix = append(mix, sizes[best])
	}
	return mix
}

func minimum(list []int) int {
	m := list[0]
	for _, n := range list {
		m = min(m, n)
	}
	return m
}

func maximum(list []int) int {
	m := list[0]
	for _, n := range list {
		m = max(m, n)
	}
	return m
}

// Min returns the smallest size in bytes, FCS included; 0 means the natural size of the template.
func (z *Sizes) Min() int { return z.low }

// Max returns the largest size in bytes, FCS included; 0 means the natural size of the template.
func (z *Sizes) Max() int { return z.high }

// Mean returns the average size in bytes, FCS included; 0 means the natural size of the template.
func (z *Sizes) Mean() float64 {
	if z.mix == nil {
		return float64(z.low+z.high) / 2
	}
	sum := 0
	for _, n := range z.mix {
		sum += n
	}
	return float64(sum) / float64(len(z.mix))
}

// sizer produces the sizes one after another, without FCS.
type sizer struct {
	Sizes
	index, stride int
	rng           *rand.Rand
}

func newSizer(z Sizes, shard, shards int, seed uint64) sizer {
	s := sizer{Sizes: z, index: shard, stride: shards}
	if z.random {
		s.rng = rand.New(rand.NewPCG(seed, 0x512e^uint64(shard)<<32))
	}
	n := s.period()
	s.index, s.stride = s.index%n, s.stride%n
	return s
}

func (s *sizer) period() int {
	if s.mix != nil {
		return len(s.mix)
	}
	return s.high - s.low + 1
}

func (s *sizer) next() int {
	if s.low == s.high {
		return s.low - FCSLen
	}
	i := s.index
	if s.random {
		i = s.rng.IntN(s.high - s.low + 1)
	} else if s.index += s.stride; s.index >= s.period() {
		s.index -= s.period()
	}
	if s.mix != nil {
		return s.mix[i] - FCSLen
	}
	return s.low + i - FCSLen
}
