package show

import (
	"fmt"
	"io"
	"strings"
)

// Text is a View that writes a line for each state and a table at the end.
type Text struct{ W io.Writer }

// Update implements View.
func (t Text) Update(s State) {
	if s.Sent != nil && s.Sent.Last {
		return // the table contains the last state
	}
	if line := line(s); line != "" {
		fmt.Fprintln(t.W, line)
	}
}

// line returns the text for a state, in one line. Rates and latencies are those since the previous line.
func line(s State) string {
	var b strings.Builder
	if s.Sent != nil {
		f := &s.Sent.Total
		fmt.Fprintf(&b, "%8s  sent %s  %s  %s, %s on the wire", clock(s.Sent.Elapsed), count(f.Frames), Rate(f.PPS), Bits(f.L2Bits), Bits(f.L1Bits))
	}
	if r := s.Received; r != nil {
		if s.Sent == nil {
			fmt.Fprintf(&b, "%8s", clock(r.Elapsed))
		}
		c := &r.Total
		fmt.Fprintf(&b, "  received %s", count(c.Received))
		if r.Other > 0 {
			fmt.Fprintf(&b, " and %s without a tag", count(r.Other))
		}
		fmt.Fprintf(&b, "  %s, %s", Rate(r.Recent.PPS), Bits(r.Recent.L2Bits))
		for _, n := range []struct {
			n    uint64
			name string
		}{{c.Lost, "lost"}, {c.Duplicates, "twice"}, {c.Reordered, "reordered"}, {r.Dropped, "dropped by our own ring"}} {
			if n.n > 0 {
				fmt.Fprintf(&b, "  %s %s", n.name, count(n.n))
			}
		}
		if l := r.Recent.Latency; l.Count > 0 {
			fmt.Fprintf(&b, "  latency %s, 99 %% below %s, 99.9 %% %s", Span(l.P50), Span(l.P99), Span(l.P999))
		}
	}
	return b.String()
}

// Finish implements View.
func (t Text) Finish(r Result) error { return Table(t.W, r) }
