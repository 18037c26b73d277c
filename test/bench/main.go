// Command bench compares Loam with gVisor's netstack on the same links in one run, with Linux as a
// reference. It writes a table, plots and a JSON file.
//
//	go run . -out results          about five minutes
//	go run . -quick                one short run of everything: does it work?
//	go run . -only tap/ -reps 9    some tests, more often
//	go run . -from results/results.json -out elsewhere
//	go run . -reps 9 -out ../../docs/bench      the figures that the documents show
//	go run . -paths -rate 100 -reps 3 -out ../../docs      paths.md: long and lossy paths, Loam and Linux, about 15 minutes
//	go run . -guests -out ../../docs/bench/guests      the same, of whole programs
//
// With -guests, one program runs in virtual machines, on Loam and on Debian's kernel, and as a process,
// on Loam and on Linux. This needs QEMU, and Debian's kernel, which is downloaded once with apt-get.
//
// The command needs root, or a system on which every user may use user namespaces and /dev/net/tun. It
// creates network namespaces without names, which disappear with its processes, and changes nothing
// outside them.
//
// Package subject contains the stacks, and load what they do. cell runs one load on one stack in a
// process of its own. guest contains the whole program and the machines. plan defines the tests and
// their order, and report writes the results. Package hop is separate: it measures the cost of channels
// between layers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"loam/test/bench/cell"
	"loam/test/bench/path"
	"loam/test/bench/plan"
	"loam/test/bench/report"
)

func main() {
	if cell.Main() {
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	var (
		o        plan.Options
		out      = flag.String("out", "results", "write the files into this `folder`")
		from     = flag.String("from", "", "measure nothing; make the files again from this JSON `file`")
		quick    = flag.Bool("quick", false, "one short run of everything")
		only     = flag.String("only", "", "only tests whose names match this `expression`; names are like tap/pingpong, with -paths like 'IPv4, 100 Mbit/s, 10ms, 0.1 %, cubic'")
		subjects = flag.String("subjects", "", "only these, by `names` with commas between: loam, gvisor, gvisor-vnet, linux")
		strict   = flag.Bool("strict", false, "fail if Loam misses an aim")
	)
	paths := flag.Bool("paths", false, "measure long and lossy paths in place of the stack")
	rate := flag.Int64("rate", 1000, "with -paths: those of at most so many `Mbit/s`")
	least := flag.Int64("least", 0, "with -paths: those of at least so many `Mbit/s`")
	flag.BoolVar(&o.Guests, "guests", false, "measure a whole program, in virtual machines and as a process, in place of the stack")
	flag.IntVar(&o.Reps, "reps", 5, "run everything so many times")
	flag.DurationVar(&o.Span, "span", 750*time.Millisecond, "let each run last about so long")
	flag.IntVar(&o.Conns, "conns", 10000, "open so many connections to see what an idle one takes")
	flag.DurationVar(&o.Limit, "limit", 8*time.Minute, "begin no run after this time")
	flag.Parse()
	if *quick {
		o.Reps, o.Span, o.Conns = 1, 200*time.Millisecond, 1000
	}
	if *subjects != "" {
		o.Subjects = strings.Split(*subjects, ",")
	}
	if *only != "" {
		expression, err := regexp.Compile(*only)
		if err != nil {
			return err
		}
		o.Only = expression
	}
	if *paths {
		return measurePaths(*out, o.Reps, func(r *path.Row) bool {
			return *least*1e6 <= r.Path.Rate && r.Path.Rate <= *rate*1e6 && (o.Only == nil || o.Only.MatchString(r.Name()))
		})
	}
	results, err := results(*from, o)
	if err != nil {
		return err
	}
	if err := report.Write(*out, results); err != nil {
		return err
	}
	if n := len(results.Failures); o.Guests && *quick && n > 0 {
		return fmt.Errorf("%d runs gave no result; the first, %s on %s: %s", n, results.Failures[0].Test, results.Failures[0].Subject, results.Failures[0].Error)
	}
	if *strict && !aimsKept(results) {
		return errors.New("Loam misses an aim; see the table in " + *out)
	}
	return nil
}

// measurePaths measures the rows of long and lossy paths for which the function pick
// returns true, and writes their table. The folder is created first: a run takes minutes.
func measurePaths(folder string, reps int, pick func(*path.Row) bool) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	rows, err := path.Run(pick, reps, os.Stderr)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(folder, "paths.md"))
	if err != nil {
		return err
	}
	path.Write(f, rows, fmt.Sprintf("medians of %d, %d CPUs, %s", reps, runtime.NumCPU(), time.Now().Format("2 January 2006")))
	return f.Close()
}

// results runs the measurements, or reads earlier results from a file.
func results(from string, o plan.Options) (*plan.Results, error) {
	if from != "" {
		return report.Read(from)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return plan.Run(ctx, o, os.Stderr)
}

func aimsKept(r *plan.Results) bool {
	for _, o := range r.Rows {
		if met, known := o.Met(); known && !met {
			return false
		}
	}
	return true
}
