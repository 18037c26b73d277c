package show

import (
	"fmt"
	"io"
	"strings"
	"time"

	"loam/gen/sink"
)

// bar is the number of latencies in one interval of the histogram. The interval extends from the upTo of the bar before
// it to its own upTo. The last bar has no upper bound, and its upTo is 0.
type bar struct {
	upTo  time.Duration
	count uint64
}

// barsOf returns the bars of a latency histogram, without the empty bars at its beginning and its end.
func barsOf(l *sink.Latency) (all []bar) {
	below := uint64(0)
	for _, b := range l.Buckets {
		if n := b.Count - below; n > 0 || len(all) > 0 {
			all = append(all, bar{b.Bound, n})
		}
		below = b.Count
	}
	for len(all) > 0 && all[len(all)-1].count == 0 {
		all = all[:len(all)-1]
	}
	if rest := uint64(l.Count) - below; len(l.Buckets) > 0 && rest > 0 {
		all = append(all, bar{0, rest})
	}
	return all
}

func (b bar) name() string {
	if b.upTo == 0 {
		return "longer"
	}
	return "up to " + Span(b.upTo)
}

// widestBar is the length of the longest bar in characters.
const widestBar = 40

// histogram writes the latencies as horizontal bars, one per line.
func histogram(out io.Writer, l *sink.Latency) error {
	all := barsOf(l)
	if len(all) == 0 {
		return nil
	}
	top := uint64(0)
	for _, b := range all {
		top = max(top, b.count)
	}
	fmt.Fprint(out, "\nlatencies\n")
	for _, b := range all {
		line := fmt.Sprintf("%14s%14s%8.2f %%  %s", b.name(), count(b.count), 100*float64(b.count)/float64(l.Count), strings.Repeat("█", int(widestBar*b.count/top)))
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// spark returns the histogram as one line of text, with the bounds of the first and the last bar.
func spark(l *sink.Latency) string {
	all := barsOf(l)
	if len(all) == 0 {
		return ""
	}
	values := make([]float64, len(all))
	for i, b := range all {
		values[i] = float64(b.count)
	}
	return fmt.Sprintf("%s %s %s", all[0].name(), bars(values), all[len(all)-1].name())
}
