// Package pace decides when frames go: Rate is what a user asks for, Clock turns
// time into permits, Pacer waits for them, Spread tells how evenly they went.
//
// Read rate.go, clock.go, pacer.go, spread.go. Rate and Clock are pure: the time
// comes in as nanoseconds from any origin.
package pace

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"loam/gen/frame"
)

// Unit is what a rate counts.
type Unit uint8

// Units.
const (
	Frames Unit = iota // frames
	L2Bits             // bits of frames, with the frame check sequence: what switches count
	L1Bits             // bits on the wire, with preamble and gap too: what a link's speed means
)

// Rate is a number of units a second; the zero value is as fast as possible.
type Rate struct {
	PerSecond uint64
	Unit      Unit
}

// Bounds of a rate.
const (
	MaxFrames = 1_000_000_000     // a second
	MaxBits   = 1_000_000_000_000 // a second
)

const rateAllowed = "max; 1pps to 1Gpps; 1bps to 1Tbps, of frames with FCS (layer 2); 1bpsL1 to 1TbpsL1, with preamble and gap; k, M, G and T before the unit"

// ParseRate reads "max", "250kpps", "1.5Mpps", "2Gbps" (layer 2) or "2GbpsL1".
func ParseRate(s string) (Rate, error) {
	if s == "max" {
		return Rate{}, nil
	}
	wrong := fmt.Errorf("%q is not a rate; allowed: %s", s, rateAllowed)
	var r Rate
	limit := uint64(MaxBits)
	var text string
	switch {
	case strings.HasSuffix(s, "pps"):
		text, limit = strings.TrimSuffix(s, "pps"), MaxFrames
	case strings.HasSuffix(s, "bpsL1"):
		text, r.Unit = strings.TrimSuffix(s, "bpsL1"), L1Bits
	case strings.HasSuffix(s, "bps"):
		text, r.Unit = strings.TrimSuffix(s, "bps"), L2Bits
	default:
		return Rate{}, wrong
	}
	n, err := parseScaled(text)
	if err != nil || n < 1 || n > float64(limit) {
		return Rate{}, wrong
	}
	r.PerSecond = uint64(math.Round(n))
	return r, nil
}

// parseScaled reads a number with a prefix of the SI, of which that for 1000 is written K, too.
func parseScaled(s string) (float64, error) {
	scale := 1.0
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			scale = 1e3
		case 'M':
			scale = 1e6
		case 'G':
			scale = 1e9
		case 'T':
			scale = 1e12
		}
	}
	if scale != 1 {
		s = s[:len(s)-1]
	}
	if strings.Trim(s, "0123456789.") != "" {
		return 0, strconv.ErrSyntax // no exponents, signs or infinities
	}
	n, err := strconv.ParseFloat(s, 64)
	return n * scale, err
}

// IsMax reports whether there is no limit.
func (r Rate) IsMax() bool { return r.PerSecond == 0 }

// String is a form that ParseRate reads.
func (r Rate) String() string {
	if r.IsMax() {
		return "max"
	}
	n, prefix := r.PerSecond, ""
	for _, p := range []string{"k", "M", "G"} {
		if n%1000 != 0 {
			break
		}
		n, prefix = n/1000, p
	}
	return fmt.Sprint(n, prefix, [...]string{Frames: "pps", L2Bits: "bps", L1Bits: "bpsL1"}[r.Unit])
}

// cost is what frames of so many bytes together, FCS included, take of the rate.
func (r Rate) cost(frames, bytes int) int64 {
	switch r.Unit {
	case L2Bits:
		return int64(8 * bytes)
	case L1Bits:
		return int64(8 * (bytes + frames*frame.WireOverhead))
	}
	return int64(frames)
}

// FramesPerSecond is the rate for frames of a mean size in bytes, FCS included;
// +Inf is as fast as possible.
func (r Rate) FramesPerSecond(size float64) float64 {
	switch {
	case r.IsMax():
		return math.Inf(1)
	case r.Unit == L2Bits:
		return float64(r.PerSecond) / (8 * size)
	case r.Unit == L1Bits:
		return float64(r.PerSecond) / (8 * (size + frame.WireOverhead))
	}
	return float64(r.PerSecond)
}

// Share is the part of the rate that one of n equal senders has; part counts
// from 0. The parts add up to the rate.
func (r Rate) Share(part, n int) Rate {
	if r.IsMax() {
		return r
	}
	share := r.PerSecond / uint64(n)
	if uint64(part) < r.PerSecond%uint64(n) {
		share++
	}
	return Rate{share, r.Unit}
}
