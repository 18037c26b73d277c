//go:build linux

package genbench

import (
	"fmt"
	"slices"
	"testing"

	"loam/gen/bench"
)

// aim is a goal for a method: to be faster than another method or program (the peer) by a factor, by CPU time and by
// wall time.
type aim struct {
	name, than string
	least      float64
	// pairs is the number of additional short turns in which the method and its peer run alone, one after the other, to
	// measure the ratio to one percent. 0: the ratio is far from the goal, and the turns for the table are precise enough.
	pairs int
	// bound is a loop that makes only the same system calls, so no generator can be faster; "" means
	// none.
	bound string
	// queues is the number of queues that Loam and the peer use; 0 means 1.
	queues int
	// float means that no thread of Loam or of the peer is bound to a processor in these short turns. A peer that is
	// not bound moves away from a processor that another program uses; a bound thread would wait.
	float bool
}

// takesPart reports whether the aim concerns a contestant.
func (a *aim) takesPart(c bench.Contestant) bool {
	return a.is(c, a.name) || a.is(c, a.than) || a.is(c, a.bound)
}

// is reports whether c has the given name and the number of queues of the aim.
func (a *aim) is(c bench.Contestant, name string) bool {
	return c.Queues == max(1, a.queues) && c.Name == name
}

// key identifies the aim.
func (a *aim) key() string { return a.name + " by " + a.than }

// slack is the fraction by which a method may be slower and still count as no slower. Two loops with the same system
// calls differ by as much between measurements.
const slack = 0.03

var aims = []aim{
	{name: "xdp", than: testpmdX, least: 1.1, pairs: 16, bound: inC("xdp")},
	{name: "ring", than: trafgen, least: 1.2},
	{name: "udp", than: inC("udp"), least: 1, pairs: 40},
	{name: "raw", than: inC("raw"), least: 1, pairs: 40},
	{name: "packet", than: inC("packet"), least: 1, pairs: 40},
	{name: "udpgso", than: "udp", least: 2},
	{name: "mmsg", than: "udp", least: 2},
}

// outcome is the result of an aim.
type outcome struct {
	Name  string  `json:"name"`
	Than  string  `json:"than"`
	Least float64 `json:"least"`
	// In each round, every contestant runs once. Ratio is the median of the rounds' ratios by CPU time, and Wall by
	// wall time. With more queues only the ratio by wall time is known, and both fields hold it.
	Ratio float64 `json:"ratio"`
	Wall  float64 `json:"wall"`
	Met   bool    `json:"met"` // whether Ratio is at least Least
	// MetByWall reports whether Wall is at least Least. It is unreliable on a machine with other load.
	MetByWall bool `json:"met_by_wall"`
	// Quiet is the number of rounds in which no other program took a processor from Loam or from the peer.
	// If there are at least quietRounds, Wall is from these rounds only.
	Quiet int `json:"quiet"`
	// Bound and BoundByWall are the ratios of the loop that bounds the aim; 0: the aim has no bound.
	Bound       float64 `json:"bound,omitempty"`
	BoundByWall float64 `json:"bound_by_wall,omitempty"`
}

// newOutcome returns the outcome of an aim for its ratios by CPU time and by wall time.
func newOutcome(name, than string, least, byProcessor, byWall float64) outcome {
	met := func(r float64) bool { return r >= least || least == 1 && r >= 1-slack }
	return outcome{Name: name, Than: than, Least: least, Ratio: byProcessor, Wall: byWall, Met: met(byProcessor), MetByWall: met(byWall)}
}

// verdict returns a summary in a few words.
func (o outcome) verdict() string {
	switch {
	case o.Met && o.MetByWall:
		return "met"
	case o.Met:
		return "met by processor time"
	case o.MetByWall:
		return "met by elapsed time"
	case o.Bound > 0 && max(o.Bound, o.BoundByWall) < o.Least:
		return "missed, and out of reach here"
	}
	return "missed"
}

// judge compares the rows of each aim round by round, because the two contestants ran one after the other in each
// round. closely has rows of short turns in which only these two ran, by the key of the aim. If an aim has such rows,
// they count instead.
func judge(rows []bench.Row, closely map[string][]bench.Row) (all []outcome) {
	for _, a := range aims {
		from := rows
		if own, ok := closely[a.key()]; ok {
			from = own
		}
		queues := max(1, a.queues)
		x, y := find(from, a.name, queues), find(from, a.than, queues)
		if x == nil || y == nil {
			continue
		}
		name := a.name
		if queues > 1 {
			name = fmt.Sprintf("%s, %d queues", a.name, queues)
		}
		byWall, quiet := wall(x, y)
		o := newOutcome(name, a.than, a.least, ratio(x.PerCPU, y.PerCPU), byWall)
		o.Quiet = quiet
		if z := find(from, a.bound, queues); z != nil {
			o.Bound, o.BoundByWall = ratio(z.PerCPU, y.PerCPU), ratio(z.PPS, y.PPS)
		}
		all = append(all, o)
	}
	return append(all, scaling(rows)...)
}

// scaling compares several queues with one, by wall time: several must not be slower.
func scaling(rows []bench.Row) (all []outcome) {
	for i := range rows {
		more := &rows[i]
		if one := find(rows, more.Name, 1); more.Queues > 1 && one != nil {
			r, quiet := wall(more, one)
			o := newOutcome(fmt.Sprintf("%s, %d queues", more.Name, more.Queues), "1 queue", 1, r, r)
			o.Quiet = quiet
			all = append(all, o)
		}
	}
	return all
}

// queueCounts returns the numbers of queues to measure: powers of two, and the number of processors.
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

// quietRounds is the smallest number of undisturbed rounds for a ratio by wall time.
const quietRounds = 3

// undisturbed reports whether a contestant had its processors nearly to itself in a round.
func undisturbed(r *bench.Row, round int) bool {
	const share = 0.9
	return round < len(r.PerCPU) && r.PerCPU[round] > 0 && r.PPS[round]/r.PerCPU[round] >= share*float64(r.Queues)
}

// wall returns the ratio of x to y by wall time, and the number of quiet rounds. A round in which
// another program takes the processor from one of the two compares their shares of it, so only quiet
// rounds count, if there are enough of them.
func wall(x, y *bench.Row) (byWall float64, quiet int) {
	var a, b []float64
	for i := range min(len(x.PPS), len(y.PPS)) {
		if undisturbed(x, i) && undisturbed(y, i) {
			a, b = append(a, x.PPS[i]), append(b, y.PPS[i])
		}
	}
	if len(a) < quietRounds {
		return ratio(x.PPS, y.PPS), len(a)
	}
	return ratio(a, b), len(a)
}

// ratio returns the median of x divided by y, round by round.
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

// String formats the outcome.
func (o outcome) String() string {
	return fmt.Sprintf("%s by %s: %.2f, %.2f by the wall, wanted %.1f: %s", o.Name, o.Than, o.Ratio, o.Wall, o.Least, o.verdict()+o.bounded())
}

// bounded returns the part of a verdict about the bound, or "".
func (o outcome) bounded() string {
	if o.Bound == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s: %.2f, %.2f)", inC(o.Name), o.Bound, o.BoundByWall)
}
