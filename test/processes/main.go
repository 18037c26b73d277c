//go:build linux

// Command processes measures Linux programs on Loam, and the same programs on a Linux guest for comparison: Debian's
// kernel, in the same emulator, with the same memory and CPUs, in the same run. It writes a table of ratios.
//
//	go run ./test/processes [-cpus 1,2] [-span TIME] [-only PREFIX] [-reps N] [-count] [-out FILE]
//	go run ./test/processes [-cpus N] -profile ROW
//	go run ./test/processes -rings [-only PREFIX]
//	go run ./test/processes -only disk [-family NAMES] [-device virtio,nvme,ahci] [-programs DIR]
//
// The programs are micro (system calls, memory, processes), redis with its own benchmark as client, and nginx with
// wrk. With -only disk they are programs that use a disk: see disk.go. The machines with Loam and with Linux run alternately, reps times each. The table has the median of each row.
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
	cpus   = flag.String("cpus", "1,2", "numbers of CPUs of the machines")
	span   = flag.Duration("span", 200*time.Millisecond, "how long each row of micro runs")
	only   = flag.String("only", "", "run only redis, nginx, micro, or the rows of micro that begin with this text; disk: rows with files on a disk")
	reps   = flag.Int("reps", 3, "runs of each machine")
	many   = flag.Bool("count", false, "count instructions instead of time, on one CPU")
	rows   = flag.String("profile", "", "print the functions of Loam that run during a row, and nothing else: a row of redis or nginx, or those of micro that begin with this text; with -only disk: a row of fio, mailbench, git, or of cached names")
	shares = flag.Bool("rings", false, "print the share of the instructions of redis and nginx (with -only disk: of rows of disks) that Linux executes in ring 0, and the bound that follows, and nothing else")
	out    = flag.String("out", "", "the file to write the table to; empty: standard output")

	family  = flag.String("family", "", "with -only disk: run only the workloads whose names begin with one of these texts, such as fio,mailbench")
	devices = flag.String("device", "virtio", "with -only disk: kinds of disks: virtio, nvme, ahci")
	others  = flag.String("programs", "", "with -only disk: a folder with static programs, fio and those of mailbench from sv6; rows without their program are left out")
	in      = flag.String("in", "", "the folder for the disks of the machines; empty: the folder for temporary files")
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
	dir, err := os.MkdirTemp(*in, "loam-processes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if *rows != "" {
		return profile(ctx, dir, *rows)
	}
	if *shares {
		return rings(ctx, dir)
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
	if err := b.warmUp(ctx); err != nil {
		return err
	}
	t := newTable()
	for _, n := range strings.Split(*cpus, ",") {
		count, err := strconv.Atoi(n)
		if err != nil {
			return fmt.Errorf("-cpus %s: %w", *cpus, err)
		}
		for range *reps {
			for _, w := range b.workloads(count) {
				for _, kernel := range []string{onLinux, onLoam} {
					if err := t.measure(ctx, b, kernel, count, w); err != nil {
						return err
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

// measure runs a workload once and adds its results.
func (t *table) measure(ctx context.Context, b *built, kernel string, cpus int, w workload) error {
	output, took, err := b.run(ctx, kernel, cpus, w)
	if err != nil {
		return fmt.Errorf("%s on %s: %w\n%s", w.name, kernel, err, output)
	}
	if w.whole != "" {
		t.add(w.whole, cpus, kernel, float64(took.Nanoseconds()))
		return nil
	}
	results := 0
	w.parse(output, func(row string, ns float64) {
		if results++; !*many || !waits(row) {
			t.add(row, cpus, kernel, ns)
		}
	})
	if results == 0 {
		return fmt.Errorf("%s on %s printed no result:\n%s", w.name, kernel, output)
	}
	return nil
}
