// Package pace computes when frames are sent. Rate is a user's target rate, Clock computes how many frames may be sent
// at a time, Waiter waits for the next such time, and Spread measures how evenly the frames were sent.
//
// Reading order: rate.go, clock.go, spacing.go, waiter.go, spread.go. Rate and Clock are pure: the caller passes the
// time, in nanoseconds from an arbitrary start.
package pace

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"loam/gen/frame"
)

// Unit is the quantity that a rate limits per second.
type Unit uint8

// Values of Unit.
const (
	Frames Unit = iota // frames
	L2Bits             // bits of frames including the frame check sequence, as switches count
	L1Bits             // bits on the wire including preamble and gap, as in the nominal speed of a link
	Line               // millionths of the link's speed: see Rate.Of
)

// Rate is a number of units per second. The zero value means as fast as possible.
type Rate struct {
	PerSecond uint64
	Unit      Unit
}

// Bounds of a rate.
const (
	MaxFrames = 1_000_000_000     // frames per second
	MaxBits   = 1_000_000_000_000 // bits per second
)

const rateAllowed = "max; whole numbers, 1pps to 1Gpps; 1bps to 1Tbps, of frames with FCS (layer 2); 1bpsL1 to 1TbpsL1, with preamble and gap; k, M, G and T before the unit; 0.0001% to 100% of the line"

// ParseRate parses "max", "250kpps", "1.5Mpps", "2Gbps" (layer 2), "2GbpsL1", or a share of the link's speed such as
// "50%".
func ParseRate(s string) (Rate, error) {
	if s == "max" {
		return Rate{}, nil
	}
	wrong := fmt.Errorf("%q is not a rate; allowed: %s", s, rateAllowed)
	var r Rate
	limit, unit := uint64(MaxBits), 1.0
	var text string
	switch {
	case strings.HasSuffix(s, "pps"):
		text, limit = strings.TrimSuffix(s, "pps"), MaxFrames
	case strings.HasSuffix(s, "bpsL1"):
		text, r.Unit = strings.TrimSuffix(s, "bpsL1"), L1Bits
	case strings.HasSuffix(s, "bps"):
		text, r.Unit = strings.TrimSuffix(s, "bps"), L2Bits
	case strings.HasSuffix(s, "%"):
		text, r.Unit, limit, unit = strings.TrimSuffix(s, "%"), Line, whole, whole/100
	default:
		return Rate{}, wrong
	}
	n, err := parseScaled(text)
	n *= unit
	rounded := math.Round(n)
	if err != nil || n < 1 || n > float64(limit) || math.Abs(n-rounded) > 1e-9*n {
		return Rate{}, wrong
	}
	r.PerSecond = uint64(rounded)
	return r, nil
}

// whole is the value of PerSecond, in the unit Line, that stands for the full speed of a link.
const whole = 1_000_000

// Of returns r for a link whose speed is given in bits per second. A rate in the unit Line is converted to bits on the
// wire; other rates are returned unchanged.
func (r Rate) Of(speed uint64) Rate {
	if r.Unit != Line {
		return r
	}
	return Rate{max(1, uint64(float64(speed)*float64(r.PerSecond)/whole+0.5)), L1Bits}
}

// parseScaled parses a number with an SI prefix. The prefix for 1000 may also be written K.
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
		return 0, strconv.ErrSyntax // rejects exponents, signs and infinities
	}
	n, err := strconv.ParseFloat(s, 64)
	return n * scale, err
}

// IsMax reports whether the rate is unlimited.
func (r Rate) IsMax() bool { return r.PerSecond == 0 }

// String returns a form that ParseRate accepts.
func (r Rate) String() string {
	if r.IsMax() {
		return "max"
	}
	if r.Unit == Line {
		return strconv.FormatFloat(float64(r.PerSecond)/(whole/100), 'f', -1, 64) + "%"
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

// cost returns the number of units that frames cost. bytes is their total size, FCS included.
func (r Rate) cost(frames, bytes int) int64 {
	switch r.Unit {
	case L2Bits:
		return int64(8 * bytes)
	case L1Bits:
		return int64(8 * (bytes + frames*frame.WireOverhead))
	}
	return int64(frames)
}

// FramesPerSecond returns the rate in frames per second. size is the mean frame size in bytes, FCS included. It returns
// +Inf if the rate is unlimited, or a share of a link whose speed is unknown.
func (r Rate) FramesPerSecond(size float64) float64 {
	switch {
	case r.IsMax(), r.Unit == Line: // the speed of the link is unknown
		return math.Inf(1)
	case r.Unit == L2Bits:
		return float64(r.PerSecond) / (8 * size)
	case r.Unit == L1Bits:
		return float64(r.PerSecond) / (8 * (size + frame.WireOverhead))
	}
	return float64(r.PerSecond)
}

// Share returns the part of the rate that sender number part of n equal senders gets, counted from 0. The parts add up
// to the rate.
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
