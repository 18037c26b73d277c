//go:build linux

package rfc2544

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"loam/gen/frame"
	"loam/gen/show"
	"loam/gen/sink"
)

// Report is the result of a run.
type Report struct {
	TX      string        `json:"tx"`
	RX      string        `json:"rx"`
	Tests   []string      `json:"tests"`
	Trial   time.Duration `json:"trial_ns"`
	Repeats int           `json:"repeats"`
	Rows    []Row         `json:"rows"`
}

// Row is the result for one frame size.
type Row struct {
	Size       int            `json:"size"`
	Top        float64        `json:"top"`               // the highest rate that was tried, in frames per second
	Throughput float64        `json:"throughput"`        // highest rate without loss in frames per second; 0: there is none
	AtLeast    bool           `json:"at_least"`          // no loss at the highest rate tried: the throughput may be higher
	Latency    []sink.Latency `json:"latency,omitempty"` // one element per repetition
	Loss       []Loss         `json:"loss,omitempty"`
	Bursts     []Burst        `json:"bursts,omitempty"` // one element per repetition
	Trials     []Trial        `json:"trials"`           // all trials in order, also those in which this machine was too slow
}

// Burst is the longest burst of frames without loss.
type Burst struct {
	Frames  uint64 `json:"frames"`
	AtLeast bool   `json:"at_least"` // longer bursts were not tried, so the result may be higher
}

// Loss is the frame loss at a percentage of the top rate.
type Loss struct {
	Percent int     `json:"percent"`
	Lost    float64 `json:"lost"`           // fraction of frames lost, 0 to 1
	Slow    string  `json:"slow,omitempty"` // reason why this machine was too slow: see Trial.Slow
}

// WireBits returns the throughput on the wire, in bits per second.
func (r *Row) WireBits() float64 { return 8 * float64(r.Size+frame.WireOverhead) * r.Throughput }

// Table writes the report as a table.
func (r *Report) Table(out io.Writer) error {
	fmt.Fprintf(out, "RFC 2544, from %s to %s: trials of %s, %d repetition(s)\n\n", r.TX, r.RX, show.Span(r.Trial), r.Repeats)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "frame\ttried up to\tthroughput\ton the wire\tof what was tried\tlatency mean\tmedian\t99.9 %\tmax\tburst mean\tleast\tmost\t")
	for i := range r.Rows {
		row := &r.Rows[i]
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%.1f %%\t%s\t%s\t\n", row.Size, show.Rate(row.Top), atLeast(row.AtLeast)+show.Rate(row.Throughput), atLeast(row.AtLeast)+show.Bits(row.WireBits()),
			100*row.Throughput/max(1, row.Top), latencies(row.Latency), bursts(row.Bursts))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if slices.Contains(r.Tests, FrameLoss) {
		if err := r.lossTable(out); err != nil {
			return err
		}
	}
	for i := range r.Rows {
		r.Rows[i].slowTrials(out)
	}
	return nil
}

// slowTrials writes the number of trials in which this machine was too slow, for each test, with the reasons.
func (r *Row) slowTrials(out io.Writer) {
	for _, test := range Tests {
		all, reasons := 0, map[string]int{}
		for i := range r.Trials {
			if t := &r.Trials[i]; t.Test == test {
				all++
				if t.Slow != "" {
					reasons[t.Slow]++
				}
			}
		}
		for _, reason := range slices.Sorted(maps.Keys(reasons)) {
			fmt.Fprintf(out, "frames of %d bytes, %s: in %d of %d trials %s; they say nothing about the device, which may be better than this\n", r.Size, test, reasons[reason], all, reason)
		}
	}
}

// latencies returns four columns of text: the average of the means, the average of the medians, the worst quantile
// of 99.9 %, and the worst maximum.
func latencies(all []sink.Latency) string {
	if len(all) == 0 {
		return "-\t-\t-\t-"
	}
	var mean, median, p999, most time.Duration
	for _, l := range all {
		mean += l.Mean
		median += l.P50
		p999, most = max(p999, l.P999), max(most, l.Max)
	}
	n := time.Duration(len(all))
	return fmt.Sprintf("%s\t%s\t%s\t%s", show.Span(mean/n), show.Span(median/n), show.Span(p999), show.Span(most))
}

// atLeast returns the prefix of a search's result: "≥ " if the highest load tried has passed, so that the result is a
// lower bound.
func atLeast(reached bool) string {
	if reached {
		return "≥ "
	}
	return ""
}

// bursts returns three columns of text about the longest bursts without loss.
func bursts(all []Burst) string {
	if len(all) == 0 {
		return "-\t-\t-"
	}
	sum, least, most := uint64(0), all[0], all[0]
	reached := false
	for _, b := range all {
		sum += b.Frames
		reached = reached || b.AtLeast
		if b.Frames < least.Frames {
			least = b
		}
		if b.Frames > most.Frames {
			most = b
		}
	}
	return fmt.Sprintf("%s%d\t%s%d\t%s%d", atLeast(reached), sum/uint64(len(all)), atLeast(least.AtLeast), least.Frames, atLeast(most.AtLeast), most.Frames)
}

// lossTable writes a table with a column for each tenth of the top rate.
func (r *Report) lossTable(out io.Writer) error {
	fmt.Fprintln(out, "\nframes lost, at parts of the highest rate")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "frame\t")
	for percent := 100; percent > 0; percent -= 10 {
		fmt.Fprintf(w, "%d %%\t", percent)
	}
	fmt.Fprintln(w)
	for i := range r.Rows {
		cells := make([]string, 10)
		for j := range cells {
			cells[j] = "-"
			if j < len(r.Rows[i].Loss) {
				cells[j] = fmt.Sprintf("%.3f %%", 100*r.Rows[i].Loss[j].Lost)
				if r.Rows[i].Loss[j].Slow != "" {
					cells[j] = "slow, " + cells[j]
				}
			}
		}
		fmt.Fprintf(w, "%d\t%s\t\n", r.Rows[i].Size, strings.Join(cells, "\t"))
	}
	return w.Flush()
}
