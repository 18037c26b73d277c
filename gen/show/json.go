package show

import (
	"encoding/json"
	"io"

	"loam/gen"
	"loam/gen/sink"
)

// JSON is a View that writes JSON lines: one object for each state, in which "event" is "sample", and one for the
// result, in which "event" is "report". "sent", "received" and "lost" are present only if they are known.
type JSON struct{ W io.Writer }

// jsonSample is the JSON form of a State.
type jsonSample struct {
	Event    string       `json:"event"`
	Sent     *gen.Sample  `json:"sent,omitempty"`
	Received *sink.Report `json:"received,omitempty"`
}

// jsonReport is the JSON form of a Result.
type jsonReport struct {
	Event    string       `json:"event"`
	Sent     *gen.Report  `json:"sent,omitempty"`
	Received *sink.Report `json:"received,omitempty"`
	Lost     *int64       `json:"lost,omitempty"`
}

// Update implements View.
func (j JSON) Update(s State) {
	json.NewEncoder(j.W).Encode(jsonSample{"sample", s.Sent, s.Received}) // an error is ignored here: Finish returns it
}

// Finish implements View.
func (j JSON) Finish(r Result) error {
	out := jsonReport{Event: "report", Sent: r.Sent, Received: r.Received}
	if r.Lost >= 0 {
		out.Lost = &r.Lost
	}
	return json.NewEncoder(j.W).Encode(out)
}
