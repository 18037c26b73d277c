// Command suites runs the test suites of other projects as processes in ring 3 of a virtual machine, and with the same
// binaries in the same root folder on Linux, and compares the outcome of each test. It needs root.
//
//	go run ./test/suites                          all units; writes docs/suites.md
//	go run ./test/suites -only cpython            the units of one suite
//	go run ./test/suites -only cpython:test_os    one unit
//	go run ./test/suites -from                    runs nothing, evaluates the outputs that were kept; writes docs/suites.md
//
// The suites are CPython's, Go's, busybox's and perl's own tests, and stress-ng. testdata/suites.txt lists the units: each
// runs in a machine of its own, and on Linux in namespaces of its own. The root folder is an image of ext4 by debootstrap,
// which is made once, in the user's cache folder. The outputs are kept there too; a unit whose output of Linux is kept
// does not run on Linux again, unless -again is given.
//
// A difference needs a reason in reasons.txt. The command fails if a test differs without a reason, or if more than 1
// % of the tests fail for a reason of class "ours" (Loam is at fault).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

type options struct {
	only  string // the suite or SUITE:UNIT to run; empty: all
	from  bool   // evaluate the outputs that were kept, and run nothing
	again bool   // run units on Linux again, although their output is kept
	side  string // "loam" or "linux": run the tests on this side only, without a report; otherwise on both
	keep  string // folder of the outputs
	cpus  int
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "run only the units of a suite, or one unit: `SUITE[:UNIT]`")
	flag.BoolVar(&o.from, "from", false, "run nothing, and evaluate the outputs that were kept")
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
	if !o.from {
		if err := o.runUnits(ctx, chosen); err != nil {
			return err
		}
		if o.side != "both" {
			return nil
		}
	}
	return o.report(all, chosen)
}

// report prints the differences of the chosen units. It writes the document if all units were chosen.
func (o *options) report(all, chosen []unit) error {
	reasons, err := readReasons(reasonsText)
	if err != nil {
		return err
	}
	var list []comparison
	var missing []unit // units without kept output of Loam or of Linux
	for _, u := range chosen {
		c, err := compareUnit(o.keep, u)
		if o.from && errors.Is(err, os.ErrNotExist) {
			missing = append(missing, u)
			continue
		}
		if err != nil {
			return err
		}
		c.explain(reasons)
		list = append(list, c)
	}
	for _, c := range list {
		fmt.Print(c)
	}
	fmt.Print(table(list))
	if len(chosen) == len(all) {
		if err := os.WriteFile("docs/suites.md", []byte(document(list, missing)), 0o644); err != nil {
			return err
		}
	}
	return judge(list, len(chosen) == len(all))
}

// choose returns the units that the user has selected. Of the parameter only, "SUITE"
// means all units of a suite, and "SUITE:UNIT" means one unit. If the text is empty, it
// returns all units.
func choose(all []unit, only string) []unit {
	suite, name, one := strings.Cut(only, ":")
	var list []unit
	for _, u := range all {
		if only == "" || u.suite == suite && (!one || u.name() == name) {
			list = append(list, u)
		}
	}
	return list
}
