//go:build linux

package rfc2544

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"loam/gen/frame"
	"loam/gen/show"
	"loam/gen/sink"
)

// Report is the outcome of a run.
type Report struct {
	TX      string        `json:"tx"`
	RX      string        `json:"rx"`
	Tests   []string      `json:"tests"`
	Trial   time.Duration `json:"trial_ns"`
	Repeats int           `json:"repeats"`
	Rows    []Row         `json:"rows"`
}

// Row is what was found for one size of frames.
type Row struct {
	Size       int            `json:"size"`
	Top        float64        `json:"top"`               // the highest rate that was tried, frames a second
	Throughput float64        `json:"throughput"`        // frames a second without loss; 0: none
	Slow       string         `json:"slow,omitempty"`    // why the top may be ours and not the device's
	Latency    []sink.Latency `json:"latency,omitempty"` // of each repetition
	Loss       []Loss         `json:"loss,omitempty"`
	Bursts     []uint64       `json:"bursts,omitempty"` // frames without loss, of each repetition
}

// Loss is the frame loss at a part of the top rate.
type Loss struct {
	Percent int     `json:"percent"`
	Lost    float64 `json:"lost"` // 0 to 1
}

// WireBits is the rate on the wire, in bits a second.
func (r *Row) WireBits() float64 { return 8 * float64(r.Size+frame.WireOverhead) * r.Throughput }

// Table writes the report for people.
func (r *Report) Table(out io.Writer) error {
	fmt.Fprintf(out, "RFC 2544, from %s to %s: trials of %v, %d repetition(s)\n\n", r.TX, r.RX, r.Trial, r.Repeats)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "frame\ttried up to\tthroughput\ton the wire\tof what was tried\tlatency mean\tmedian\t99.9 %\tmax\tburst mean\tleast\tmost\t")
	for i := range r.Rows {
		row := &r.Rows[i]
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%.1f %%\t%s\t%s\t\n", row.Size, show.Rate(row.Top), show.Rate(row.Throughput), show.Bits(row.WireBits()),
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
		if s := r.Rows[i].Slow; s != "" {
			fmt.Fprintf(out, "frames of %d bytes: %s in some trials, so the device may be better than this\n", r.Rows[i].Size, s)
		}
	}
	return nil
}

// latencies are four columns: the mean of the means and medians, the worst of the
// others.
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
	return fmt.Sprintf("%v\t%v\t%v\t%v", round(mean/n), round(median/n), round(p999), round(most))
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Nanosecond) }

// bursts are three columns.
func bursts(all []uint64) string {
	if len(all) == 0 {
		return "-\t-\t-"
	}
	sum := uint64(0)
	for _, b := range all {
		sum += b
	}
	return fmt.Sprintf("%d\t%d\t%d", sum/uint64(len(all)), slices.Min(all), slices.Max(all))
}

// lossTable has a column for each tenth of the top rate.
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
			}
		}
		fmt.Fprintf(w, "%d\t%s\t\n", r.Rows[i].Size, strings.Join(cells, "\t"))
	}
	return w.Flush()
}
