package show

import (
	"encoding/json"
	"io"

	"loam/gen"
	"loam/gen/sink"
)

// JSON writes a line for each state and one for the end: an object with "event",
// which is "sample" or "report", and "sent", "received" and "lost" where they are
// known.
type JSON struct{ W io.Writer }

type jsonSample struct {
	Event    string       `json:"event"`
	Sent     *gen.Sample  `json:"sent,omitempty"`
	Received *sink.Report `json:"received,omitempty"`
}

type jsonReport struct {
	Event    string       `json:"event"`
	Sent     *gen.Report  `json:"sent,omitempty"`
	Received *sink.Report `json:"received,omitempty"`
	Lost     *int64       `json:"lost,omitempty"`
}

// Update implements View.
func (j JSON) Update(s State) {
	json.NewEncoder(j.W).Encode(jsonSample{"sample", s.Sent, s.Received}) // Finish reports the error
}

// Finish implements View.
func (j JSON) Finish(r Result) error {
	out := jsonReport{Event: "report", Sent: r.Sent, Received: r.Received}
	if r.Lost >= 0 {
		out.Lost = &r.Lost
	}
	return json.NewEncoder(j.W).Encode(out)
}
