package show

import (
	"fmt"
	"io"
	"text/tabwriter"

	"loam/gen"
	"loam/gen/pace"
	"loam/gen/sink"
)

// Table writes the result of a run as text tables.
func Table(out io.Writer, r Result) error {
	if r.Sent != nil {
		if err := sentTable(out, r.Sent); err != nil {
			return err
		}
	}
	if r.Received != nil {
		if r.Sent != nil {
			fmt.Fprintln(out)
		}
		return receivedTable(out, r.Received, r.Lost)
	}
	return nil
}

// maxRows is the maximum number of flows in a table.
const maxRows = 40

// sentTable writes the table of sent streams, followed by the counters of the method.
func sentTable(out io.Writer, r *gen.Report) error {
	fmt.Fprintf(out, "sent by %s on %s, %d queue(s), in %s\n\n", r.Method, r.Interface, r.Queues, Span(r.Elapsed))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "stream\tframes\trate\tasked\toff by\tlayer 2\tlayer 1\tgap mean\tdeviation\t99 %\t99.9 %\tmax\t")
	for _, s := range r.Streams {
		off := "-"
		if _, err := pace.ParseRate(s.Asked); err == nil && s.Asked != "max" {
			off = fmt.Sprintf("%+.3f %%", 100*s.Error)
		}
		g := s.Gaps
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", s.Name, count(s.Frames), Rate(s.PPS), s.Asked, off,
			Bits(s.L2Bits), Bits(s.L1Bits), Span(g.Mean), Span(g.Deviation), Span(g.P99), Span(g.P999), Span(g.Max))
	}
	if len(r.Streams) > 1 {
		t := &r.Total
		fmt.Fprintf(w, "all\t%s\t%s\t\t\t%s\t%s\t\t\t\t\t\t\n", count(t.Frames), Rate(t.PPS), Bits(t.L2Bits), Bits(t.L1Bits))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range r.Streams {
		if s.Missed > 0 {
			fmt.Fprintf(out, "%s: the machine could not keep the rate for %s\n", s.Name, Span(s.Missed))
		}
	}
	c := r.Counters
	fmt.Fprintf(out, "\nhanded over %s, left %s, refused %s; waited for room %s times, for buffers %s, for the link %s; %s system calls\n",
		count(c.Handed), count(c.Left), count(c.Refused), count(c.Busy), count(c.NoBuffers), count(c.Down), count(c.Kicks))
	if r.LinkFrames >= 0 {
		uncut := ""
		if cuts := r.Method == "mmsg" || r.Method == "udpgso"; cuts && uint64(r.LinkFrames) < c.Left {
			uncut = ", where a run of datagrams that is cut up behind it is one"
		}
		fmt.Fprintf(out, "%s itself counted %s frames sent%s\n", r.Interface, count(uint64(r.LinkFrames)), uncut)
	}
	return nil
}

// receivedTable writes the table of received flows, and the latency histogram. lost is the number of frames lost during
// the whole run; negative means unknown.
func receivedTable(out io.Writer, r *sink.Report, lost int64) error {
	fmt.Fprintf(out, "received in %s\n\n", Span(r.Elapsed))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "stream/queue/flow\tframes\tlost\ttwice\treordered\tby at most\tlatency min\tmedian\t99 %\t99.9 %\tmax\tjitter\t")
	row := func(name string, c *sink.Counts) {
		l := c.Latency
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, count(c.Received), count(c.Lost), count(c.Duplicates),
			count(c.Reordered), c.Extent, Span(l.Min), Span(l.P50), Span(l.P99), Span(l.P999), Span(l.Max), Span(c.Jitter))
	}
	for i := range r.Flows {
		if i == maxRows {
			break
		}
		row(flowName(r, i), &r.Flows[i].Counts)
	}
	if len(r.Flows) != 1 {
		row("all", &r.Total)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := histogram(out, &r.Total.Latency); err != nil {
		return err
	}
	if n := len(r.Flows) - maxRows; n > 0 {
		fmt.Fprintf(out, "and %d flows more\n", n)
	}
	if lost >= 0 {
		fmt.Fprintf(out, "\nlost of all that was sent: %s\n", count(uint64(lost)))
	}
	for _, n := range []struct {
		n    uint64
		text string
	}{
		{r.Other, "frames had no tag"},
		{r.Total.Before, "numbers are below the first that arrived: these frames are lost, or were sent before the sink began"},
		{r.Untracked, "frames were of flows beyond those that are followed"},
		{r.Dropped, "frames found no room in our own ring: they are among the lost"},
		{r.Passed, "packets were left to the kernel, of a VLAN or of several frames: they may be among the lost, and --method ring counts them"},
		{r.Total.Negative, "frames arrived before they were sent: the clocks do not agree, and latencies are wrong"},
		{r.Total.Ancient, "frames came too late to be told from duplicates: they count as lost"},
	} {
		if n.n > 0 {
			fmt.Fprintf(out, "%s %s\n", count(n.n), n.text)
		}
	}
	return nil
}

// flowName returns the name of flow i. If there are flows of several runs, the name starts with the number of the run.
func flowName(r *sink.Report, i int) string {
	f := &r.Flows[i]
	if r.Runs < 2 {
		return f.ID.String()
	}
	return fmt.Sprintf("%04x: %v", f.Run, f.ID)
}
