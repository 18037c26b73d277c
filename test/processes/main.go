//go:build linux

// Command processes measures Linux programs on Loam, and the same programs on a Linux guest for comparison: Debian's
// kernel, in the same emulator, with the same memory and CPUs, in the same run. It writes a table of ratios.
//
//	go run ./test/processes [-cpus 1,2] [-span TIME] [-only PREFIX] [-reps N] [-count] [-out FILE]
//	go run ./test/processes -profile ROW [-after TIME]
//
// The programs are micro (system calls, memory, processes), redis with its own benchmark as client, and nginx with
// wrk. The machines with Loam and with Linux run alternately, reps times each. The table has the median of each row.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

var (
	cpus  = flag.String("cpus", "1,2", "numbers of CPUs of the machines")
	span  = flag.Duration("span", 200*time.Millisecond, "how long each row of micro runs")
	only  = flag.String("only", "", "run only redis, nginx, micro, or the rows of micro that begin with this text")
	reps  = flag.Int("reps", 3, "runs of each machine")
	many  = flag.Bool("count", false, "count instructions instead of time, on one CPU")
	rows  = flag.String("profile", "", "print the functions of Loam that run during a row, and nothing else: a row of redis or nginx, or those of micro that begin with this text")
	after = flag.Duration("after", 0, "with -profile: pause before the trace, for a server to start")
	out   = flag.String("out", "", "the file to write the table to; empty: standard output")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "processes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "loam-processes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if *rows != "" {
		return profile(ctx, dir, *rows)
	}
	if *many {
		if err := countInstructions(dir); err != nil {
			return err
		}
		*cpus, *reps = "1", 1
	}
	b, err := build(ctx, dir)
	if err != nil {
		return err
	}
	t := newTable()
	for _, n := range strings.Split(*cpus, ",") {
		count, err := strconv.Atoi(n)
		if err != nil {
			return fmt.Errorf("-cpus %s: %w", *cpus, err)
		}
		for range *reps {
			for _, w := range b.workloads() {
				for _, kernel := range []string{onLinux, onLoam} {
					output, err := b.run(ctx, kernel, count, w)
					if err != nil {
						return fmt.Errorf("%s on %s: %w\n%s", w.name, kernel, err, output)
					}
					results := 0
					w.parse(output, func(row string, ns float64) { t.add(row, count, kernel, ns); results++ })
					if results == 0 {
						return fmt.Errorf("%s on %s printed no result:\n%s", w.name, kernel, output)
					}
				}
			}
		}
	}
	text := t.String()
	if *out == "" {
		_, err = os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(filepath.Clean(*out), []byte(text), 0o644)
}
