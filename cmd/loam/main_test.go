package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"loam/internal/machine"
	"loam/unikernel/cost"
)

// loam runs a command line and returns its output and exit status.
func loam(t *testing.T, args ...string) (out, errs string, status int) {
	t.Helper()
	var o, e bytes.Buffer
	root := newRoot()
	root.SetOut(&o)
	root.SetErr(&e)
	status = execute(t.Context(), root, args)
	return o.String(), e.String(), status
}

// TestMistakesAreOneLine checks that a mistake prints one line without usage and ends with status 2.
func TestMistakesAreOneLine(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"rum", `loam: there is no command "rum"; did you mean loam run?`},
		{"frobnicate", `loam: there is no command "frobnicate"; see loam --help`},
		{"run", "loam: there is no program to run; name a package, a folder or a .go file: loam run ./server"},
		{"run --nett user .", "loam: unknown flag: --nett; see loam run --help"},
		{"run -p", "loam: flag needs an argument: 'p' in -p; see loam run --help"},
		{"run . -v", "loam: flag needs an argument: 'v' in -v; put the program's arguments behind --: loam run . -- ARGS"},
		{"run . -x", "loam: unknown shorthand flag: 'x' in -x; put the program's arguments behind --: loam run . -- ARGS"},
		{"run -it /bin/bash", "loam: unknown shorthand flag: 'i' in -it; leave it out: a program has the standard input of loam run, and with -d an empty one"},
		{"run --name a/b .", `loam: "a/b" is no name of a guest; use 1 to 63 letters, digits and _.- with a letter or digit first`},
		{"run --name= .", `loam: "" is no name of a guest; use 1 to 63 letters, digits and _.- with a letter or digit first`},
		{"run -dt /bin/bash", "loam: -t has no use with -d, because a detached guest has no terminal; leave out one of them"},
		{"ps now", `loam: loam ps takes no argument, and got "now"; leave it out`},
		{"logs", "loam: loam logs takes other arguments; write loam logs NAME"},
		{"logs a b", "loam: loam logs takes other arguments; write loam logs NAME"},
		{"logs --tail -1 a", "loam: --tail -1 is no number of lines; write --tail 10, or --tail all"},
		{"stop", "loam: loam stop takes other arguments; write loam stop NAME..."},
		{"stop -t -1 a", "loam: --time -1 is no time; use 0 or more seconds"},
		{"stop ../a", `loam: "../a" is no name of a guest; use 1 to 63 letters, digits and _.- with a letter or digit first`},
		{"rm", "loam: loam rm takes other arguments; write loam rm NAME..."},
		{"wait", "loam: loam wait takes other arguments; write loam wait NAME..."},
		{"test --platform cloud", `loam: there is no platform "cloud"; use --platform auto, vm or process`},
		{"doctor now", `loam: loam doctor takes no argument, and got "now"; leave it out`},
		{"bench sycsall", `loam: there is no command "sycsall"; did you mean loam bench syscall?`},
		{"bench syscall now", `loam: loam bench syscall takes no argument, and got "now"; leave it out`},
		{"bench syscall --rounds 0", "loam: --rounds 0 measures nothing; use 1 or more"},
		{"version 2", `loam: loam version takes no argument, and got "2"; leave it out`},
	} {
		out, errs, status := loam(t, strings.Fields(test.args)...)
		if out != "" || errs != test.want+"\n" || status != statusUsage {
			t.Errorf("loam %s: status %d\n%s%s\nwant status %d\n%s", test.args, status, out, errs, statusUsage, test.want)
		}
	}
}

func TestExitStatus(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		says   string
	}{
		{nil, 0, ""},
		{exitError(3), 3, ""},
		{errors.New("the build failed:\n\tx"), statusFailed, "loam: the build failed: x\n"},
	} {
		var errs bytes.Buffer
		cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return test.err }}
		cmd.SetErr(&errs)
		if got := execute(t.Context(), cmd, []string{}); got != test.status || errs.String() != test.says {
			t.Errorf("%v: status %d, %q; want %d, %q", test.err, got, errs.String(), test.status, test.says)
		}
	}
}

// A command ended by a signal prints one line and has the exit status that shells report, whatever error it
// returned.
func TestInterruption(t *testing.T) {
	for _, test := range []struct {
		signal syscall.Signal
		status int
		says   string
	}{
		{syscall.SIGINT, 130, "loam: interrupted\n"},
		{syscall.SIGTERM, 143, "loam: terminated\n"},
	} {
		for _, wrapped := range []bool{true, false} {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(interruption(test.signal))
			err := ctx.Err()
			if wrapped {
				err = fmt.Errorf("building: %w", context.Cause(ctx))
			}
			var errs bytes.Buffer
			cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return err }}
			cmd.SetErr(&errs)
			if got := execute(ctx, cmd, []string{}); got != test.status || errs.String() != test.says {
				t.Errorf("%v: status %d, %q; want %d, %q", err, got, errs.String(), test.status, test.says)
			}
		}
	}
}

func TestDoctorTextAndJSON(t *testing.T) {
	out, errs, status := loam(t, "doctor")
	if status != 0 || errs != "" || !strings.Contains(out, "toolchain  go ") {
		t.Errorf("status %d, %q:\n%s", status, errs, out)
	}
	out, _, status = loam(t, "doctor", "--json")
	var found []machine.Finding
	if err := json.Unmarshal([]byte(out), &found); err != nil || status != 0 || len(found) == 0 {
		t.Errorf("--json: status %d, %v:\n%s", status, err, out)
	}
}

func TestFindingsTable(t *testing.T) {
	var out strings.Builder
	err := printFindings(&out, []machine.Finding{
		{Area: "link", Name: "tap", State: machine.Missing, Detail: "not there", Remedy: "modprobe tun"},
		{Area: "link", Name: "af_xdp", State: machine.Missing, Planned: true, Detail: "no", Remedy: "unsaid"},
		{Area: "platform", Name: "process", State: machine.OK, Detail: "yes"},
	})
	const want = `link      tap      missing  not there
link      af_xdp   later    no
platform  process  ok       yes

What to do:
  tap: modprobe tun
`
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
}

func TestCostsTable(t *testing.T) {
	var out strings.Builder
	err := printCosts(&out, &cost.Result{Hook: 8.25, Rows: []cost.Row{
		{Call: "nothing", What: "an empty function", Linux: 1.5, Loam: 1.5, Ratio: 1},
		{Call: "write", What: "a byte", Linux: 300, Loam: 20, Ratio: 15},
	}})
	const want = `     call  Linux, ns  Loam, ns  Linux/Loam
  nothing        1.5       1.5         1.0  an empty function
    write      300.0      20.0        15.0  a byte

The hook costs 8.2 ns before a call does any work.
`
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
}

// TestBenchSyscall runs the real benchmark, briefly.
func TestBenchSyscall(t *testing.T) {
	out, errs, status := loam(t, "bench", "syscall", "--rounds", "1", "--json")
	var r cost.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil || status != 0 || errs != "" || len(r.Rows) == 0 {
		t.Errorf("status %d, %v, %s:\n%s", status, err, errs, out)
	}
}

func TestDescribe(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8"}
	if got, want := describe(info), "loam (devel), commit unknown, built with go1.26.8"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	info.Main.Version = "v1.2.0"
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}
	if got, want := describe(info), "loam v1.2.0, commit abc, modified, built with go1.26.8"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, errs, status := loam(t, "completion", shell); status != 0 || len(out) < 100 {
			t.Errorf("%s: status %d, %s", shell, status, errs)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	_, errs, status := loam(t, "build", ".")
	if status != statusUsage || errs != "loam: there is no name for the file; write loam build -o program.elf .\n" {
		t.Errorf("status %d, %s", status, errs)
	}
}
