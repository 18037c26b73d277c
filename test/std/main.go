// Command std runs Go's own tests on Loam and on plain Linux, one after the other,
// and holds the two beside each other, test by test. What differs must stand in
// reasons.txt, which says why; what stands there must differ, so that nothing is
// excused that works.
//
//	go run ./test/std                 all packages, in full; writes docs/std.md
//	go run ./test/std -short net/url  some packages, quickly; only checks
//
// Both sides are built from the same GOROOT, without cgo and without vet. run.go
// runs them, compare.go judges, table.go writes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

// packages are those that have to do with the network or with descriptors.
var packages = []string{"net/...", "crypto/tls", "internal/poll", "syscall", "os", "log/syslog", "expvar"}

// report is where the table goes, from the root of the tree.
const report = "docs/std.md"

func main() {
	short := flag.Bool("short", false, "tell tests to be quick, and write no table")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *short, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "std:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, short bool, patterns []string) error {
	all := len(patterns) == 0
	if all {
		patterns = packages
	}
	reasons, err := readReasons(reasonsText)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "loam-std-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	loam := filepath.Join(dir, "loam")
	if err := build(ctx, loam); err != nil {
		return err
	}
	onLoam, err := runTests(ctx, short, patterns, loam, "test")
	if err != nil {
		return err
	}
	onLinux, err := runTests(ctx, short, patterns, "go", "test", "-vet=off")
	if err != nil {
		return err
	}
	differing := compare(onLoam, onLinux)
	fmt.Print(table(onLoam, onLinux))
	for _, d := range differing {
		fmt.Println(d)
	}
	if all && !short {
		text := document(onLoam, onLinux, differing, reasons)
		if err := os.WriteFile(report, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return judge(onLoam, differing, reasons, short)
}
