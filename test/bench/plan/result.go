package plan

import (
	"cmp"
	"math"
	"slices"

	"loam/test/bench/load"
	"loam/test/bench/subject"
)

// Results are the results of one run of the program, and the content of the JSON file.
type Results struct {
	Machine  Machine
	Guests   bool `json:",omitempty"` // the results are of whole programs, not of the stack
	Reps     int
	Span     string
	Conns    int
	Took     string
	Cut      bool `json:",omitempty"` // the time limit was reached before all measurements were made
	Failures []Failure
	Rows     []Outcome
	Hops     []Hop
}

// Failure describes a measurement (a cell) that failed.
type Failure struct {
	Test, Subject string
	Rep           int
	Error         string
}

// Outcome is a row with its figures.
type Outcome struct {
	Test  string
	Group string
	Row
	Figures []Figure
	// Ratio is how many times as good Loam is as its peer. Without a named peer, the peer is gVisor
	// with its own links. RatioVnet is the same, on a tap, for gVisor with our tap link. Both are
	// medians of the ratios of the repetitions, and 0 if there are none.
	Ratio     float64
	RatioVnet float64 `json:",omitempty"`
}

// Figure is the result of one subject in one row: all repetitions and their median.
type Figure struct {
	Subject string
	Median  float64
	Runs    []float64
}

// Hop is the result of one of the designs that package hop measures.
type Hop struct {
	Shape string
	Brief string
	Batch int
	NS    float64 // ns per packet
}

// Of returns the figure of the named subject in the row.
func (o *Outcome) Of(name string) (Figure, bool) {
	for _, f := range o.Figures {
		if f.Subject == name {
			return f, true
		}
	}
	return Figure{}, false
}

// Against returns the subject that Loam is compared with.
func (r *Row) Against() string { return cmp.Or(r.Peer, subject.GVisor) }

// Met reports whether Loam meets the row's aim. known is false without an aim or without figures.
func (o *Outcome) Met() (met, known bool) {
	loam, ok := o.Of(subject.Loam)
	if o.Aim == nil || !ok || o.Ratio == 0 {
		return false, false
	}
	return o.Ratio >= o.Aim.Ratio && (o.Aim.AtMost == 0 || loam.Median <= o.Aim.AtMost), true
}

// key identifies the figures of one row and subject.
type key struct{ test, sample, subject string }

// missing stands for a repetition that failed, so that the others keep their indices.
var missing = math.NaN()

// keep stores the samples of one repetition. samples is nil if the repetition failed.
func keep(figures map[key][]float64, t Test, name string, rep int, samples load.Samples) {
	for _, row := range t.Rows {
		k := key{t.Name, row.Sample, name}
		for len(figures[k]) < rep {
			figures[k] = append(figures[k], missing)
		}
		v, ok := samples[row.Sample]
		if !ok {
			v = missing
		}
		figures[k] = append(figures[k], v)
	}
}

// rows computes the outcomes.
func rows(tests []Test, figures map[key][]float64) []Outcome {
	var out []Outcome
	for _, t := range tests {
		for _, row := range t.Rows {
			o := Outcome{Test: t.Name, Group: t.Group, Row: row}
			of := func(name string) []float64 { return figures[key{t.Name, row.Sample, name}] }
			for _, name := range t.Subjects {
				if runs := present(of(name)); len(runs) > 0 {
					o.Figures = append(o.Figures, Figure{name, median(runs), runs})
				}
			}
			o.Ratio = ratio(row.Better, of(subject.Loam), of(row.Against()))
			o.RatioVnet = ratio(row.Better, of(subject.Loam), of(subject.GVisorVnet))
			out = append(out, o)
		}
	}
	return out
}

// ratio returns how many times as good the figures ours (of Loam) are as theirs (of its peer): the median over the
// repetitions that both have, or 0 if there is none.
func ratio(better Better, ours, theirs []float64) float64 {
	var rs []float64
	for i := range min(len(ours), len(theirs)) {
		r := ours[i] / theirs[i]
		if better == Lower {
			r = 1 / r
		}
		if !math.IsNaN(r) && !math.IsInf(r, 0) {
			rs = append(rs, r)
		}
	}
	return median(rs)
}

func present(xs []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(xs), math.IsNaN)
}

// median returns the median of xs, or 0 if xs is empty.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	m := len(s) / 2
	if len(s)%2 == 1 {
		return s[m]
	}
	return (s[m-1] + s[m]) / 2
}
