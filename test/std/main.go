// Command std runs Go's own tests on Loam and on plain Linux, one after the other,
// and holds the two beside each other, test by test. What differs must stand in
// reasons.txt, which says why; what stands there must differ, so that nothing is
// excused that works.
//
//	go run ./test/std                 all packages, in full; writes docs/std.md
//	go run ./test/std -platform vm    the same in a virtual machine; writes docs/std-vm.md
//	go run ./test/std -short net/url  some packages, quickly; only checks
//
// What the tests print is kept in two files, as go test -json writes it, in a
// folder named by -keep; without that it is a temporary one, which stays if
// something is wrong. With -from the files of such a folder are judged again,
// and nothing is run: for when only reasons.txt has changed. Files of several runs
// may be put one behind the other for that.
//
// Both sides are built from the same GOROOT, without cgo and without vet. A test that
// would end the others of its package, because it takes for granted that programs can
// be started, is left out on Loam; reasons.txt says which. run.go runs the tests,
// compare.go judges, table.go writes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

// platform is what Loam stands on, and the report about it.
type platform struct {
	name     string // for loam test --platform
	title    string
	flags    []string // of loam test: what the tests of runtime need
	packages []string
	report   string // from the root of the tree
}

// platforms are those that there are; the first is the default.
var platforms = []platform{
	{
		"process", "as a process", nil,
		[]string{
			"net/...", "crypto/tls", "internal/poll", "syscall", "os/...", "log/syslog", "expvar",
			"io/...", "time", "context", "path/filepath",
		},
		"docs/std.md",
	},
	{
		"vm", "in a virtual machine of QEMU", []string{"-m=4G", "--cpus=2"},
		[]string{
			"runtime", "sync", "sync/atomic", "time", "context", "os", "io/...", "net", "net/http", "crypto/tls",
			"encoding/...", "math/...", "sort", "strings",
		},
		"docs/std-vm.md",
	},
}

// findPlatform finds one by its name.
func findPlatform(name string) (platform, error) {
	for _, p := range platforms {
		if p.name == name {
			return p, nil
		}
	}
	return platform{}, fmt.Errorf("there is no platform %q: take process or vm", name)
}

func main() {
	var o options
	flag.StringVar(&o.platform, "platform", platforms[0].name, "what the tests run on beside Linux: process or vm")
	flag.BoolVar(&o.short, "short", false, "tell tests to be quick")
	flag.StringVar(&o.keep, "keep", "", "keep what the tests print in this `folder`")
	flag.StringVar(&o.from, "from", "", "run nothing, and judge what -keep has kept in this `folder`")
	flag.Parse()
	o.patterns = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "std:", err)
		os.Exit(1)
	}
}

type options struct {
	platform   string
	short      bool
	keep, from string
	patterns   []string // empty: all packages
}

func (o *options) run(ctx context.Context) error {
	on, err := findPlatform(o.platform)
	if err != nil {
		return err
	}
	reasons, err := readReasons(reasonsText, on.name)
	if err != nil {
		return err
	}
	dir := o.from
	if dir == "" {
		if dir, err = o.folder(); err != nil {
			return err
		}
		if err := o.runBoth(ctx, dir, on, reasons); err != nil {
			return err
		}
	}
	onLoam, printed, err := readKept(dir, loamFile)
	if err != nil {
		return err
	}
	onLinux, _, err := readKept(dir, linuxFile)
	if err != nil {
		return err
	}
	differing := compare(onLoam, onLinux)
	fmt.Print(table(onLoam, onLinux))
	for _, d := range differing {
		fmt.Println(d)
		if explain(reasons, d.test) == nil {
			fmt.Println(tail(printed[d.test]))
		}
	}
	if len(o.patterns) == 0 {
		text := o.head(on) + document(onLoam, onLinux, differing, reasons)
		if err := os.WriteFile(on.report, []byte(text), 0o644); err != nil {
			return err
		}
	}
	err = judge(onLoam, differing, reasons, o.short)
	switch {
	case o.from != "" || o.keep != "":
	case err != nil:
		fmt.Println("what the tests have printed is in", dir)
	default:
		os.RemoveAll(dir)
	}
	return err
}

// folder makes the folder for what the tests print.
func (o *options) folder() (string, error) {
	if o.keep == "" {
		return os.MkdirTemp("", "loam-std-")
	}
	return o.keep, os.MkdirAll(o.keep, 0o755)
}

// runBoth runs the tests on both sides.
func (o *options) runBoth(ctx context.Context, dir string, on platform, reasons []*reason) error {
	bin, err := os.MkdirTemp("", "loam-std-bin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	loam := filepath.Join(bin, "loam")
	if err := build(ctx, loam); err != nil {
		return err
	}
	patterns := o.patterns
	if len(patterns) == 0 {
		patterns = on.packages
	}
	command := append([]string{loam, "test", "--platform", on.name}, on.flags...)
	if left := leftOut(reasons); left != "" {
		command = append(command, "-skip="+left)
	}
	if err := runTests(ctx, filepath.Join(dir, loamFile), o.short, patterns, command...); err != nil {
		return err
	}
	return runTests(ctx, filepath.Join(dir, linuxFile), o.short, patterns, "go", "test", "-vet=off")
}

// tail is the end of what a test has printed.
func tail(printed string) string {
	const most = 20
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	return "\t" + strings.Join(lines[max(0, len(lines)-most):], "\n\t")
}
