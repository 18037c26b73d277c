// Package show tells people and programs how a run of the packet engine goes:
// lines of text, JSON lines, a live view in the terminal, Prometheus, a plot, and
// a table at the end. Each is a View; a run may have several.
//
// Read units.go (how numbers are written), text.go, json.go, table.go; then
// tui.go, prometheus.go, plot.go.
package show

import (
	"loam/gen"
	"loam/gen/sink"
)

// State is what there is to show at one time. Either may be nil.
type State struct {
	Sent     *gen.Sample
	Received *sink.Report
}

// Result is what there is at the end. Any may be nil.
type Result struct {
	Sent     *gen.Report
	Received *sink.Report
	// Lost is what was sent and did not arrive, where both ends are ours; below 0: it
	// is not known.
	Lost int64
}

// NewResult is the end of a run; received may be nil.
func NewResult(sent *gen.Report, received *sink.Report) Result {
	r := Result{Sent: sent, Received: received, Lost: -1}
	if sent != nil && received != nil {
		r.Lost = int64(sent.Total.Frames) - int64(received.Total.Unique)
	}
	return r
}

// View shows a run. Its methods are called by one goroutine.
type View interface {
	Update(State)
	// Finish shows the end, and lets go of what the view holds.
	Finish(Result) error
}

// All is a View of views.
type All []View

// Update implements View.
func (a All) Update(s State) {
	for _, v := range a {
		v.Update(s)
	}
}

// Finish implements View. It returns the first error, and finishes all.
func (a All) Finish(r Result) (first error) {
	for _, v := range a {
		if err := v.Finish(r); err != nil && first == nil {
			first = err
		}
	}
	return first
}
