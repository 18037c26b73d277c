//go:build linux

package genbench

import (
	"fmt"
	"slices"
	"testing"

	"loam/gen/bench"
)

// aim is what we want of a method: to be so many times as fast as another, by
// processor time and by the time of the wall.
type aim struct {
	name, than string
	least      float64
	// pairs is how many short turns, one of each, the ratio takes to be known to a
	// percent; 0: it is far from what is wanted, and those of the table do.
	pairs int
	// bound is a loop of the same calls that does nothing else, which no generator can be
	// faster than; "": there is none.
	bound string
}

// takesPart reports whether a contestant is one of those that the aim is about.
func (a *aim) takesPart(c bench.Contestant) bool {
	return c.Queues == 1 && (c.Name == a.name || c.Name == a.than || c.Name == a.bound)
}

// slack is what "no slower" may be slower by: the difference of two loops of the
// same system call is not known better than that.
const slack = 0.03

var aims = []aim{
	{"xdp", testpmdX, 1.1, 16, inC("xdp")},
	{"ring", trafgen, 1.2, 0, ""},
	{"udp", inC("udp"), 1, 40, ""},
	{"raw", inC("raw"), 1, 40, ""},
	{"packet", inC("packet"), 1, 40, ""},
	{"udpgso", "udp", 2, 0, ""},
	{"mmsg", "udp", 2, 0, ""},
}

// outcome is how an aim was met.
type outcome struct {
	Name  string  `json:"name"`
	Than  string  `json:"than"`
	Least float64 `json:"least"`
	// Ratio is the median of the rounds' ratios by processor time, Wall that by the time
	// of the wall. Of more queues only Wall is known, and is both.
	Ratio float64 `json:"ratio"`
	Wall  float64 `json:"wall"`
	Met   bool    `json:"met"` // by Ratio
	// MetByWall on a machine that others use too is chance.
	MetByWall bool `json:"met_by_wall"`
	// Bound and BoundByWall are the ratios that the bound of the aim has; 0: it has none.
	Bound       float64 `json:"bound,omitempty"`
	BoundByWall float64 `json:"bound_by_wall,omitempty"`
}

// newOutcome judges two ratios.
func newOutcome(name, than string, least, byProcessor, byWall float64) outcome {
	met := func(r float64) bool { return r >= least || least == 1 && r >= 1-slack }
	return outcome{Name: name, Than: than, Least: least, Ratio: byProcessor, Wall: byWall, Met: met(byProcessor), MetByWall: met(byWall)}
}

// verdict is what came of it in a word or three.
func (o outcome) verdict() string {
	switch {
	case o.Met && o.MetByWall:
		return "met"
	case o.Met:
		return "met by processor"
	case o.MetByWall:
		return "met by the wall"
	case o.Bound > 0 && max(o.Bound, o.BoundByWall) < o.Least:
		return "missed, and out of reach here"
	}
	return "missed"
}

// judge compares each aim's rows, round by round: the two stood next to one
// another in time. closely are rows of short turns of two alone, by the name of ours:
// where there are such, they count.
func judge(rows []bench.Row, closely map[string][]bench.Row) (all []outcome) {
	for _, a := range aims {
		from := rows
		if own, ok := closely[a.name]; ok {
			from = own
		}
		x, y := find(from, a.name, 1), find(from, a.than, 1)
		if x == nil || y == nil {
			continue
		}
		o := newOutcome(a.name, a.than, a.least, ratio(x.PerCPU, y.PerCPU), ratio(x.PPS, y.PPS))
		if z := find(from, a.bound, 1); z != nil {
			o.Bound, o.BoundByWall = ratio(z.PerCPU, y.PerCPU), ratio(z.PPS, y.PPS)
		}
		all = append(all, o)
	}
	return append(all, scaling(rows)...)
}

// scaling compares more queues with one, by the time of the wall: more must not be
// slower.
func scaling(rows []bench.Row) (all []outcome) {
	for i := range rows {
		more := &rows[i]
		if one := find(rows, more.Name, 1); more.Queues > 1 && one != nil {
			r := ratio(more.PPS, one.PPS)
			all = append(all, newOutcome(fmt.Sprintf("%s, %d queues", more.Name, more.Queues), "1 queue", 1, r, r))
		}
	}
	return all
}

// queueCounts are the numbers of queues to measure with so many processors: powers
// of two, and all.
func queueCounts(processors int) (all []int) {
	for n := 1; n < processors; n *= 2 {
		all = append(all, n)
	}
	return append(all, processors)
}

func TestQueueCounts(t *testing.T) {
	for processors, want := range map[int][]int{1: {1}, 2: {1, 2}, 6: {1, 2, 4, 6}, 8: {1, 2, 4, 8}} {
		if got := queueCounts(processors); !slices.Equal(got, want) {
			t.Errorf("%d processors: %d, want %d", processors, got, want)
		}
	}
}

func find(rows []bench.Row, name string, queues int) *bench.Row {
	for i := range rows {
		if rows[i].Name == name && rows[i].Queues == queues && rows[i].Error == "" {
			return &rows[i]
		}
	}
	return nil
}

// ratio is the median of x by y, round by round.
func ratio(x, y []float64) float64 {
	var all []float64
	for i := range min(len(x), len(y)) {
		if y[i] > 0 {
			all = append(all, x[i]/y[i])
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// String is the outcome in words.
func (o outcome) String() string {
	return fmt.Sprintf("%s by %s: %.2f, %.2f by the wall, wanted %.1f: %s", o.Name, o.Than, o.Ratio, o.Wall, o.Least, o.verdict()+o.bounded())
}

// bounded adds to a verdict what the bound has.
func (o outcome) bounded() string {
	if o.Bound == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s: %.2f, %.2f)", inC(o.Name), o.Bound, o.BoundByWall)
}
