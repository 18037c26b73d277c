// Command std runs Go's own tests on Loam and then on plain Linux, and compares the results test by
// test. Every difference must be listed in reasons.txt with a reason. Every entry of that file must be
// a difference, so that nothing that works is excused.
//
//	go run ./test/std                 all packages, in full; writes docs/std.md
//	go run ./test/std -platform vm    the same in a virtual machine; writes docs/std-vm.md
//	go run ./test/std -short          all packages, quickly; only checks
//	go run ./test/std net/url         some packages; only checks
//
// The output of the tests is kept, in the format of go test -json, in the folder given by -keep.
// Without -keep the folder is temporary, and stays only if something is wrong. If the folder is from
// the same build of Loam, the run continues it: packages already in it do not run again, unless -again
// is given. With -from, the files of such a folder are evaluated again and nothing is run, for use when
// only reasons.txt has changed.
//
// With -modules, the tests are those of well-known modules. modules.txt lists them with their versions, and
// modules-reasons.txt the reasons for their differences:
//
//	go run ./test/std -modules                      all of them; writes docs/modules.md
//	go run ./test/std -modules golang.org/x/net     one module; only checks
//
// Both sides are built from the same GOROOT, without cgo and without vet. A test that would end the
// other tests of its package, because it assumes that programs can be started, is left out on Loam;
// reasons.txt lists these. run.go runs the tests, modules.go downloads modules, keep.go keeps the
// output, compare.go evaluates it, and table.go writes the report.
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

// platform is a platform of Loam with its report.
type platform struct {
	name     string // value of loam test --platform
	title    string
	flags    []string // flags of loam test that the tests of package runtime need
	packages []string
	report   string // path from the root of the tree
}

// platforms are the supported platforms. The first is the default.
var platforms = []platform{
	{
		name: "process", title: "as a process",
		packages: []string{
			"net/...", "crypto/tls", "internal/poll", "syscall", "os/...", "log/syslog", "expvar",
			"io/...", "time", "context", "path/filepath",
		},
		report: "docs/std.md",
	},
	{
		name: "vm", title: "in a virtual machine of QEMU", flags: []string{"-m=4G", "--cpus=2"},
		packages: []string{
			"runtime", "sync", "sync/atomic", "time", "context", "os", "io/...", "net", "net/http", "crypto/tls",
			"encoding/...", "math/...", "sort", "strings",
		},
		report: "docs/std-vm.md",
	},
}

// findPlatform returns the platform with that name.
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
	flag.StringVar(&o.keep, "keep", "", "keep what the tests print in this `folder`, or go on with what it has")
	flag.BoolVar(&o.again, "again", false, "run again what -keep has kept already")
	flag.StringVar(&o.from, "from", "", "run nothing, and judge what -keep has kept in this `folder`")
	modules := flag.Bool("modules", false, "run the tests of modules.txt, or of the modules that are named, and not Go's")
	flag.Parse()
	o.patterns = flag.Args()
	run := o.run
	if *modules {
		run = o.runModules
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "std:", err)
		os.Exit(1)
	}
}

type options struct {
	platform   string
	short      bool
	again      bool
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
	patterns := o.patterns
	if len(patterns) == 0 {
		patterns = on.packages
	}
	packages, err := list(ctx, patterns)
	if err != nil {
		return err
	}
	dir := o.from
	if dir == "" {
		if dir, err = o.folder(); err != nil {
			return err
		}
		if err := o.runBoth(ctx, dir, on, packages, reasons); err != nil {
			return fmt.Errorf("%w; -keep=%s goes on", err, dir)
		}
	}
	return o.report(dir, on, packages, reasons, paper{on.report, o.head(on, piecesOf(dir))})
}

// paper is a report: its file, as a path from the root of the tree, and the beginning of its text.
type paper struct{ file, head string }

// report evaluates the outputs that are kept in a folder. It writes the report if all packages were run in full.
func (o *options) report(dir string, on platform, packages []string, reasons []*reason, to paper) error {
	onLoam, printed, err := o.read(dir, loam, packages)
	if err != nil {
		return err
	}
	onLinux, _, err := o.read(dir, linux, packages)
	if err != nil {
		return err
	}
	differing := compare(onLoam, onLinux)
	fmt.Print(table(onLoam, onLinux, packages))
	for _, d := range differing {
		fmt.Println(d)
		if explain(reasons, d.test) == nil {
			fmt.Println(tail(printed[d.test]))
		}
	}
	if o.whole() {
		text := to.head + table(onLoam, onLinux, packages) + document(onLoam, onLinux, differing, reasons)
		if err := os.WriteFile(to.file, []byte(text), 0o644); err != nil {
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

// whole reports whether all packages are run in full.
func (o *options) whole() bool { return len(o.patterns) == 0 && !o.short }

// folder creates the folder for the output of the tests.
func (o *options) folder() (string, error) {
	if o.keep == "" {
		return os.MkdirTemp("", "loam-std-")
	}
	return o.keep, os.MkdirAll(o.keep, 0o755)
}

// command builds the loam command and registers it in the folder. remove deletes the command.
func (o *options) command(ctx context.Context, dir string) (command string, remove func(), err error) {
	bin, err := os.MkdirTemp("", "loam-std-bin-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(bin) }
	command = filepath.Join(bin, "loam")
	if err = build(ctx, command); err == nil {
		err = begin(dir, command)
	}
	if err != nil {
		remove()
	}
	return command, remove, err
}

// bothSides returns how the tests run on each side: on Loam and on Linux.
func bothSides(command string, on platform, reasons []*reason) []testRun {
	onLoam := append([]string{command, "test", "--platform", on.name}, on.flags...)
	return []testRun{
		{side: loam, command: onLoam, env: withoutCgo(), reasons: reasons},
		{side: linux, command: []string{"go", "test", "-vet=off"}, env: withoutCgo()},
	}
}

// runBoth runs the tests on both sides, except for what is in the folder already.
func (o *options) runBoth(ctx context.Context, dir string, on platform, packages []string, reasons []*reason) error {
	command, remove, err := o.command(ctx, dir)
	if err != nil {
		return err
	}
	defer remove()
	for _, r := range bothSides(command, on, reasons) {
		if err := o.runSide(ctx, dir, r, packages); err != nil {
			return err
		}
	}
	return nil
}

// runSide runs packages on one side.
func (o *options) runSide(ctx context.Context, dir string, r testRun, packages []string) error {
	k, err := openKept(ctx, dir, r.side, o.short)
	if err != nil {
		return err
	}
	defer k.Close()
	var todo []string
	for _, p := range packages {
		if o.again || k.done[p] == "" {
			todo = append(todo, p)
		}
	}
	if todo == nil {
		return nil
	}
	for _, p := range todo {
		delete(k.done, p)
	}
	if o.short {
		r.flags = append(r.flags, "-short")
	}
	return r.run(ctx, k, todo)
}

// tail returns the last lines of the output of a test.
func tail(printed string) string {
	const most = 20
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	return "\t" + strings.Join(lines[max(0, len(lines)-most):], "\n\t")
}
