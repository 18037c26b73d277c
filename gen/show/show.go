// Package show displays a run of the packet engine to people and programs: as lines of text, as JSON lines, as a
// live view in the terminal, as Prometheus metrics, as a plot, and as a table at the end. Each of them is a View,
// and a run can have several.
//
// Reading order: units.go (number formats), text.go, json.go, table.go, histogram.go; then tui.go, prometheus.go,
// plot.go.
package show

import (
	"loam/gen"
	"loam/gen/sink"
)

// State is the state of a run at one time. Sent and Received may each be nil.
type State struct {
	Sent     *gen.Sample
	Received *sink.Report
}

// Result is the final result of a run. Sent and Received may be nil.
type Result struct {
	Sent     *gen.Report
	Received *sink.Report
	// Lost is the number of sent frames that did not arrive. It is known only if this process has both sent and
	// received; negative means unknown.
	Lost int64
}

// NewResult returns the result of a run. Either argument may be nil.
func NewResult(sent *gen.Report, received *sink.Report) Result {
	r := Result{Sent: sent, Received: received, Lost: -1}
	if sent != nil && received != nil {
		r.Lost = int64(sent.Total.Frames) - int64(received.Of(sent.Run).Unique)
	}
	return r
}

// View displays a run. Its methods are called in one goroutine.
type View interface {
	Update(State)
	// Finish displays the result and releases the resources of the view.
	Finish(Result) error
}

// All is a View that combines several views.
type All []View

// Update implements View.
func (a All) Update(s State) {
	for _, v := range a {
		v.Update(s)
	}
}

// Finish implements View. It finishes all views and returns the first error.
func (a All) Finish(r Result) (first error) {
	for _, v := range a {
		if err := v.Finish(r); err != nil && first == nil {
			first = err
		}
	}
	return first
}
