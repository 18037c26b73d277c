package plan

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"time"

	"loam/test/bench/cell"
	"loam/test/bench/guest"
	"loam/test/bench/hop"
	"loam/test/bench/load"
)

// Options select how much is measured.
type Options struct {
	Reps     int            // number of repetitions of each cell (one load on one subject)
	Span     time.Duration  // approximate duration of each cell
	Conns    int            // connections of the memory tests
	Guests   bool           // measure whole programs instead of the stack
	Limit    time.Duration  // time limit: no cell starts after it, and the missing cells are left out of the results
	Only     *regexp.Regexp // tests by name; nil: all
	Subjects []string       // nil: all
}

// Run runs all measurements and prints progress as it goes. It returns an error only if nothing could
// be measured.
func Run(ctx context.Context, o Options, progress io.Writer) (*Results, error) {
	tests := chosen(o)
	if o.Guests {
		dir, err := os.MkdirTemp("", "loam-bench-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		files, err := guest.Build(ctx, dir)
		if err != nil {
			return nil, err
		}
		for i := range tests {
			tests[i].Spec.Files = files
		}
	}
	start := time.Now()
	r := &Results{Machine: thisMachine(), Guests: o.Guests, Reps: o.Reps, Span: o.Span.String(), Conns: o.Conns}
	figures := map[key][]float64{}
	for rep := range o.Reps {
		for _, t := range tests {
			for i := range t.Subjects {
				name := t.Subjects[(i+rep)%len(t.Subjects)] // the first subject changes from repetition to repetition
				if time.Since(start) > o.Limit || ctx.Err() != nil {
					r.Cut = true
					continue
				}
				samples, err := runCell(ctx, t.Spec, name, o.Span)
				if err != nil {
					r.Failures = append(r.Failures, Failure{t.Name, name, rep, err.Error()})
				}
				fmt.Fprintf(progress, "%3.0fs  %d/%d  %-16s %-12s %s\n", time.Since(start).Seconds(), rep+1, o.Reps, t.Name, name, brief(t, samples, err))
				keep(figures, t, name, rep, samples)
			}
		}
	}
	r.Rows = rows(tests, figures)
	if !o.Guests && (o.Only == nil || o.Only.MatchString("hop")) {
		r.Hops = hops(o)
	}
	r.Took = time.Since(start).Round(time.Second).String()
	return r, nil
}

// chosen returns the tests and subjects that the options select.
func chosen(o Options) []Test {
	all := Tests(o.Conns)
	if o.Guests {
		all = GuestTests()
	}
	var tests []Test
	for _, t := range all {
		if o.Only != nil && !o.Only.MatchString(t.Name) {
			continue
		}
		if o.Subjects != nil {
			t.Subjects = slices.DeleteFunc(slices.Clone(t.Subjects), func(s string) bool {
				return !slices.Contains(o.Subjects, s)
			})
		}
		tests = append(tests, t)
	}
	return tests
}

func runCell(ctx context.Context, spec cell.Spec, name string, span time.Duration) (load.Samples, error) {
	spec.Subject, spec.Span = name, span
	return cell.Run(ctx, spec)
}

// brief formats the figure of the test's first row for the progress output, or the error.
func brief(t Test, samples load.Samples, err error) string {
	if err != nil {
		return "FAILED: " + err.Error()
	}
	first := t.Rows[0]
	return fmt.Sprintf("%.4g %s", samples[first.Sample], first.Unit)
}

// hops measures the shapes of package hop, also interleaved.
func hops(o Options) []Hop {
	shapes := hop.Shapes()
	times := make([][]float64, len(shapes))
	for range o.Reps {
		for i, s := range shapes {
			times[i] = append(times[i], float64(hop.Measure(s, o.Span/5).Nanoseconds()))
		}
	}
	var out []Hop
	for i, s := range shapes {
		out = append(out, Hop{s.Name, s.Brief, s.Batch, median(times[i])})
	}
	return out
}
