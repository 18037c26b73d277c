package pace

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Spacing determines how frames are distributed over time at a given rate. The zero value is even spacing.
type Spacing struct {
	Burst   int  // frames sent back to back, followed by a gap that keeps the rate; 0 and 1: no bursts
	Poisson bool // gaps are exponentially distributed, so that arrivals are a Poisson process
}

// MaxBurst is the largest Spacing.Burst.
const MaxBurst = 1_000_000

// ParseSpacing parses "even", "poisson" or "burst:N".
func ParseSpacing(s string) (Spacing, error) {
	text, isBurst := strings.CutPrefix(s, "burst:")
	switch n, err := strconv.Atoi(text); {
	case s == "even":
		return Spacing{}, nil
	case s == "poisson":
		return Spacing{Poisson: true}, nil
	case isBurst && err == nil && n >= 1 && n <= MaxBurst:
		return Spacing{Burst: n}, nil
	}
	return Spacing{}, fmt.Errorf("%q is no spacing; allowed: even, poisson, burst:N with N from 1 to %d", s, MaxBurst)
}

// Space sets the spacing of the frames that the clock permits. It must be called before the first call of Permits. The
// same seed produces the same gaps. It has no effect on an unlimited rate.
func (c *Clock) Space(s Spacing, seed uint64) {
	c.spacing = s
	if s != (Spacing{}) {
		c.ease = 0
	}
	if s.Poisson {
		c.random = rand.New(rand.NewPCG(seed, 0))
	}
}

// spaced returns the number of frames that the spacing permits when n frames are due at even spacing.
func (c *Clock) spaced(n int) int {
	switch {
	case c.spacing.Poisson:
		return min(n, 1)
	case c.spacing.Burst < 2:
		return n
	case c.left == 0 && n > 0:
		c.left = c.spacing.Burst // the credit becomes negative, so that the frames of the burst are paid for afterwards
	}
	return c.left
}

// price returns the credit that frames cost.
func (c *Clock) price(frames, bytes int) int64 {
	cost := c.of.cost(frames, bytes) * perUnit
	switch {
	case c.spacing.Poisson:
		return int64(float64(cost) * c.random.ExpFloat64())
	case c.left > 0:
		c.left = max(0, c.left-frames)
	}
	return cost
}
