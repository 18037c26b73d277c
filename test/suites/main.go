// Command suites runs the test suites of other projects as processes in ring 3 of a virtual machine, and with the same
// binaries in the same root folder on Linux, and compares the outcome of each test. It needs root.
//
//	go run ./test/suites                          all units
//	go run ./test/suites -only cpython,go:os      the units of one suite, and one unit of another
//	go run ./test/suites -from                    runs nothing; writes docs/suites.md from the results of earlier runs
//
// The suites are CPython's, Go's, busybox's, perl's and glibc's own tests, and stress-ng. testdata/suites.txt lists the
// units: each runs in a machine of its own, and on Linux in namespaces of its own. The root folder is an image of ext4 by
// debootstrap, which is made once, in the user's cache folder. The outputs are kept there too; a unit whose output of Linux
// is kept does not run on Linux again, unless -again is given. After each unit its result is written to docs/suites.jsonl,
// and docs/suites.md is written from all results.
//
// A difference needs a reason in reasons.txt. The command fails if a test differs without a reason, or if more than 1
// % of the tests fail for a reason of class "ours" (Loam is at fault).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

type options struct {
	only  string // suites and units to run, each as SUITE or SUITE:UNIT; empty: all
	from  bool   // run nothing, and write the document from the results
	again bool   // run units on Linux again, although their output is kept
	side  string // "loam" or "linux": run the tests on this side only, without a result; otherwise on both
	keep  string // folder in which the outputs of the units are kept
	cpus  int
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "run only these suites and units: `SUITE[:UNIT],...`")
	flag.BoolVar(&o.from, "from", false, "run nothing, and write docs/suites.md from the results of earlier runs")
	flag.BoolVar(&o.again, "again", false, "run on Linux again what was run there before")
	flag.StringVar(&o.side, "side", "both", "where to run: `loam|linux|both`; one side alone is not compared")
	flag.StringVar(&o.keep, "keep", "", "the `folder` of the outputs (default: in the user's cache folder)")
	flag.IntVar(&o.cpus, "cpus", 2, "CPUs of the machines, `N`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context) error {
	all, err := readUnits(unitsText)
	if err != nil {
		return err
	}
	chosen := choose(all, o.only)
	if len(chosen) == 0 {
		return fmt.Errorf("-only %s: testdata/suites.txt has no such unit", o.only)
	}
	if o.keep == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		o.keep = filepath.Join(cache, "loam-ci", "suites")
	}
	results, err := readResults(resultsFile)
	if err != nil {
		return err
	}
	reasons, err := readReasons(reasonsText)
	if err != nil {
		return err
	}
	if !o.from {
		tested, err := commit()
		if err != nil {
			return err
		}
		err = o.runUnits(ctx, chosen, func(u unit) error {
			if o.side != "both" {
				return nil
			}
			c, err := compareUnit(o.keep, u)
			if err != nil {
				return err
			}
			c.Commit = tested
			c.explain(reasons)
			fmt.Print(c)
			results[key(u)] = c
			return writeResults(resultsFile, all, results)
		})
		if err != nil || o.side != "both" {
			return err
		}
	}
	list, missing := inOrder(all, results)
	for i := range list {
		list[i].explain(reasons)
	}
	if err := os.WriteFile(documentFile, []byte(document(list, missing)), 0o644); err != nil {
		return err
	}
	shown, _ := inOrder(chosen, results)
	fmt.Print(table(shown))
	return judge(list, len(missing) == 0)
}

// choose returns the units that the user has selected. The parameter only is a list with commas: "SUITE" means all units of
// a suite, and "SUITE:UNIT" means one unit. If the text is empty, it returns all units.
func choose(all []unit, only string) []unit {
	names := strings.Split(only, ",")
	var list []unit
	for _, u := range all {
		if only == "" || slices.Contains(names, u.suite) || slices.Contains(names, key(u)) {
			list = append(list, u)
		}
	}
	return list
}
