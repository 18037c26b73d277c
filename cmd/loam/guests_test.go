//go:build !race

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loam/unikernel"
	"loam/unikernel/registry"
)

// Tests of detached and named guests, as a user runs them. Each test has a list of guests of its own.

// waiter is a program that prints the lines "ready" and, after SIGTERM, "bye", with exit status 3. With the argument
// "stubborn", it ignores SIGTERM.
const waiter = `package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	in, err := io.ReadAll(os.Stdin)
	fmt.Println("ready", len(in), err)
	fmt.Fprintln(os.Stderr, "to stderr")
	for <-c; len(os.Args) > 1; <-c {
	}
	fmt.Println("bye")
	os.Exit(3)
}
`

// guests runs commands of loam with a list of guests of its own.
type guests struct {
	*testing.T
	list string // value of XDG_RUNTIME_DIR
	loam func(args ...string) *exec.Cmd
}

// newGuests returns an empty list. At the end of the test, it kills all guests of the list.
func newGuests(t *testing.T) *guests {
	t.Helper()
	list, err := os.MkdirTemp("", "loam-list-")
	if err != nil {
		t.Fatal(err)
	}
	made := command(t)
	g := &guests{t, list, func(args ...string) *exec.Cmd {
		cmd := made(args...)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+list)
		return cmd
	}}
	t.Cleanup(func() {
		for _, name := range strings.Fields(g.output("ps", "-aq")) {
			g.loam("rm", "-f", name).Run()
		}
		os.RemoveAll(list)
	})
	return g
}

// run runs a command, and returns its standard output, standard error and exit status.
func (g *guests) run(args ...string) (out, errs string, status int) {
	g.Helper()
	cmd := g.loam(args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	cmd.Run()
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// output runs a command that must succeed without a message, and returns its standard output.
func (g *guests) output(args ...string) string {
	g.Helper()
	out, errs, status := g.run(args...)
	if status != 0 || errs != "" {
		g.Errorf("loam %q: status %d, %s", args, status, errs)
	}
	return out
}

// prints fails the test unless a command succeeds and prints want.
func (g *guests) prints(want string, args ...string) {
	g.Helper()
	if got := g.output(args...); got != want {
		g.Errorf("loam %q prints %q, want %q", args, got, want)
	}
}

// refuses fails the test unless a command fails with one line that begins with want.
func (g *guests) refuses(want string, args ...string) {
	g.Helper()
	out, errs, status := g.run(args...)
	if status != statusUsage || out != "" || !strings.HasPrefix(errs, "loam: "+want) || strings.Count(errs, "\n") != 1 {
		g.Errorf("loam %q: status %d, %s%s\nwant %s", args, status, out, errs, want)
	}
}

// empty fails the test unless nothing is left of any guest.
func (g *guests) empty() {
	g.Helper()
	left, err := os.ReadDir(g.list + "/loam")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.Error(err)
	}
	for _, f := range left {
		if f.Name() != ".lock" {
			g.Errorf("left behind: %v", f)
		}
	}
}

// eventually waits until a condition holds. The limit is generous, because the host may be busy.
func (g *guests) eventually(what string, holds func() bool) {
	g.Helper()
	for late := time.Now().Add(5 * time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(late) {
			g.Fatalf("never: %s", what)
		}
	}
}

// show returns a guest as loam ps -a --json shows it.
func (g *guests) show(name string) (found registry.Guest) {
	g.Helper()
	var list []registry.Guest
	if err := json.Unmarshal([]byte(g.output("ps", "-a", "--json")), &list); err != nil {
		g.Fatal(err)
	}
	for _, e := range list {
		if e.Name == name {
			found = e
		}
	}
	return found
}

// onPlatforms runs a test on both platforms, with the program waiter.
func onPlatforms(t *testing.T, test func(g *guests, program string, run ...string)) {
	file := program(t, waiter)
	for _, platform := range []string{"process", "vm"} {
		t.Run(platform, func(t *testing.T) { test(newGuests(t), file, "run", "--platform", platform) })
	}
}

// with returns a command line.
func with(first []string, more ...string) []string {
	return append(first[:len(first):len(first)], more...)
}

// The life of a detached guest: it starts, is listed, writes, is stopped, keeps its output and its status, and is removed.
func TestDetachedGuest(t *testing.T) {
	onPlatforms(t, func(g *guests, file string, run ...string) {
		port := fmt.Sprint(freePort(g.T))
		start := with(run, "-d", "--name", "a", "-p", port+":80", file)
		cmd := g.loam(start...)
		cmd.Stdin = strings.NewReader("not for the guest")
		if out, err := cmd.CombinedOutput(); string(out) != "a\n" || err != nil {
			g.Fatalf("%s, %v", out, err)
		}
		if ps := g.output("ps"); !strings.Contains(ps, port+"->80/tcp") || !strings.Contains(ps, "  up ") || strings.Count(ps, "\n") != 2 {
			g.Errorf("loam ps:\n%s", ps)
		}
		var followed bytes.Buffer
		follow := g.loam("logs", "-f", "a")
		follow.Stdout = &followed
		if err := follow.Start(); err != nil {
			g.Fatal(err)
		}
		defer follow.Process.Kill()
		g.eventually("the guest is ready", func() bool { return strings.Contains(g.output("logs", "a"), "to stderr") })
		if e := g.show("a"); e.State != registry.Running || !e.Detached || e.Program != file || e.Platform != run[2] || e.PID == 0 {
			g.Errorf("%+v", e)
		}
		g.refuses("a guest with the name a runs", start...)
		g.refuses("a guest with the name a runs", with(run, "--name", "a", file)...)
		g.refuses("a runs", "rm", "a")
		g.prints("a\n", "stop", "-t", "300", "a")
		g.prints("3\n", "wait", "a")
		const said = "ready 0 <nil>\nto stderr\nbye\n"
		if err := follow.Wait(); err != nil || followed.String() != said {
			g.Errorf("followed %q, %v", &followed, err)
		}
		g.prints(said, "logs", "a")
		g.prints("bye\n", "logs", "--tail", "1", "a")
		g.prints("NAME   PROGRAM   PLATFORM   PID   PORTS   STATUS\n", "ps")
		if ps := g.output("ps", "-a"); !strings.Contains(ps, "exited (3) ") {
			g.Errorf("loam ps -a:\n%s", ps)
		}
		g.prints("a\n", "stop", "a") // it has ended
		g.refuses("a guest with the name a has ended", start...)
		g.prints("a\n", "rm", "a")
		for _, args := range [][]string{{"rm", "a"}, {"stop", "a"}, {"logs", "a"}, {"wait", "a"}} {
			g.refuses("there is no guest with the name a", args...)
		}
		g.empty()
	})
}

// A program that ignores SIGTERM is killed. Its loam command ends in order and records the status.
func TestStubbornGuest(t *testing.T) {
	onPlatforms(t, func(g *guests, file string, run ...string) {
		g.prints("a\n", with(run, "-d", "--name", "a", "--net", "none", file, "--", "stubborn")...)
		g.eventually("the guest is ready", func() bool { return strings.Contains(g.output("logs", "a"), "ready") })
		g.prints("a\n", "stop", "--time", "0", "a")
		if e := g.show("a"); e.State != registry.Exited || e.Result.Status != 137 {
			g.Errorf("%+v, %+v", e, e.Result)
		}
	})
}

// A Linux program is a guest like others.
func TestDetachedLinuxProgram(t *testing.T) {
	g := newGuests(t)
	g.prints("a\n", "run", "--platform", "vm", "-d", "--name", "a", "--net", "none", "/bin/sh", "--", "-c", "echo ready; kill -STOP $$")
	g.eventually("the guest is ready", func() bool { return g.output("logs", "a") == "ready\n" })
	g.prints("a\n", "rm", "-f", "a")
	g.empty()
}

// A guest in the foreground is listed and can be stopped. Its output stays at its terminal, and it leaves nothing.
func TestForegroundGuest(t *testing.T) {
	onPlatforms(t, func(g *guests, file string, run ...string) {
		cmd := g.loam(with(run, "--net", "none", file)...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Start(); err != nil {
			g.Fatal(err)
		}
		defer cmd.Process.Kill()
		g.eventually("the guest runs", func() bool { return strings.Contains(g.output("ps"), " up ") })
		name := strings.TrimSpace(g.output("ps", "-q"))
		if e := g.show(name); e.PID != cmd.Process.Pid || e.Detached || !strings.HasPrefix(name, "main-") {
			g.Errorf("%s: %+v", name, e)
		}
		g.refuses("the output of "+name+" is not stored", "logs", name)
		waiting := g.loam("wait", name)
		var status bytes.Buffer
		waiting.Stdout = &status
		if err := waiting.Start(); err != nil {
			g.Fatal(err)
		}
		g.prints(name+"\n", "stop", "-t", "300", name)
		cmd.Wait()
		if s := cmd.ProcessState.ExitCode(); s != 3 && s != 143 { // 143: the program had no handler yet
			g.Errorf("status %d, %s%s", s, &out, &errs)
		}
		waiting.Wait()
		if got := status.String(); got != fmt.Sprintln(cmd.ProcessState.ExitCode()) && waiting.ProcessState.Success() {
			g.Errorf("loam wait prints %q", got)
		}
		g.empty()
	})
}

// If a detached guest does not start, the reason is printed, and no entry is left.
func TestDetachedGuestThatDoesNotStart(t *testing.T) {
	g := newGuests(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := program(t, waiter)
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--platform", "process", program(t, "package main\n\nfunc main() { x }\n")}, 1, "undefined: x"},
		{[]string{"--platform", "process", "-p", fmt.Sprintf("%d:80", l.Addr().(*net.TCPAddr).Port), file}, 2, "of the host is taken"},
		{[]string{"--platform", "process", "./nowhere"}, 2, "nowhere"},
		{[]string{"--platform", "vm", "-m", "32M", "--net", "none", "-v", "/usr/bin/qemu-system-x86_64:/q", "-v", "/usr/bin/qemu-system-x86_64:/r", file}, 2, "do not fit"},
		{[]string{"--platform", "process", "-v", g.list + ":/x:rw", file}, 2, "contains the folder of running guests"},
		{[]string{"--platform", "process", "-v", g.list + "/loam:/x", file}, 2, "contains the folder of running guests"},
		{[]string{"--platform", "vm", "--root", g.list, "/bin/sh"}, 2, "contains the folder of running guests"},
	} {
		out, errs, status := g.run(append([]string{"run", "-d", "--name", "a"}, c.args...)...)
		if status != c.status || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%q: status %d, %q, %s", c.args, status, out, errs)
		}
		g.empty()
	}
}

// A build that is interrupted, or whose caller is killed, leaves nothing.
func TestInterruptedDetachedGuest(t *testing.T) {
	g := newGuests(t)
	file := program(t, waiter)
	folder := t.TempDir()
	built := filepath.Join(folder, "built")
	beforeBuild(t, folder, "touch "+built+"; exec sleep 100000")
	for _, c := range []struct {
		how    string
		end    func(caller *os.Process)
		said   string
		status int
	}{
		{"SIGINT", func(p *os.Process) { p.Signal(syscall.SIGINT) }, "loam: interrupted\n", 130},
		{"loam stop", func(*os.Process) { g.prints("a\n", "stop", "-t", "0", "a") }, "loam: terminated\n", 143},
		{"loam rm", func(*os.Process) { g.prints("a\n", "rm", "-f", "a") }, "loam: terminated\n", 143},
		{"SIGKILL", func(p *os.Process) { p.Kill() }, "", -1},
	} {
		os.Remove(built)
		cmd := g.loam("run", "--platform", "process", "--net", "none", "-d", "--name", "a", file)
		cmd.Env = append(cmd.Env, "PATH="+folder+":"+os.Getenv("PATH"))
		errs, err := os.Create(filepath.Join(folder, "errors"))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		g.eventually("the build runs", func() bool { _, err := os.Stat(built); return err == nil })
		c.end(cmd.Process)
		cmd.Wait()
		errs.Close()
		said, _ := os.ReadFile(errs.Name())
		if status := cmd.ProcessState.ExitCode(); status != c.status || c.said != "" && string(said) != c.said {
			t.Errorf("%s: status %d, %s", c.how, status, said)
		}
		g.eventually("the list is empty", func() bool { return g.output("ps", "-aq") == "" })
		g.empty()
	}
}

// If the loam command of a guest is killed, the guest ends, and is shown as lost.
func TestLostGuest(t *testing.T) {
	onPlatforms(t, func(g *guests, file string, run ...string) {
		g.prints("a\n", with(run, "-d", "--name", "a", "--net", "none", file)...)
		foreground := g.loam(with(run, "--name", "b", "--net", "none", file)...)
		if err := foreground.Start(); err != nil {
			g.Fatal(err)
		}
		g.eventually("b runs", func() bool { return g.show("b").State == registry.Running })
		foreground.Process.Kill()
		foreground.Wait()
		syscall.Kill(g.show("a").PID, syscall.SIGKILL)
		g.eventually("a is lost", func() bool { return g.show("a").State == registry.Lost })
		if e := g.show("b"); e.State != registry.Lost {
			g.Errorf("%+v", e)
		}
		if ps := g.output("ps", "-a"); strings.Count(ps, "   -     -       lost\n") != 2 {
			g.Errorf("loam ps -a:\n%s", ps)
		}
		out, errs, status := g.run("wait", "a")
		if status != statusUsage || out != "" || !strings.Contains(errs, "was killed") {
			g.Errorf("status %d, %s%s", status, out, errs)
		}
		g.refuses("a guest with the name a has ended", with(run, "--name", "a", "--net", "none", file)...)
		if e := g.show("b"); e.Name != "" {
			g.Errorf("the next loam run does not remove %+v", e)
		}
		foreground = g.loam(with(run, "--name", "b", "--net", "none", file)...)
		if err := foreground.Start(); err != nil {
			g.Fatal(err)
		}
		g.eventually("b runs", func() bool { return g.show("b").State == registry.Running })
		foreground.Process.Kill()
		foreground.Wait()
		g.prints("a\nb\n", "rm", "-f", "a", "b")
		g.empty()
	})
}

// Of several commands that use a name at the same time, one succeeds.
func TestSameNameAtTheSameTime(t *testing.T) {
	g := newGuests(t)
	file := program(t, waiter)
	const attempts = 6
	outs, statuses := make([]string, attempts), make([]int, attempts)
	var group sync.WaitGroup
	for i := range attempts {
		group.Go(func() {
			var errs string
			outs[i], errs, statuses[i] = g.run("run", "--platform", "process", "--net", "none", "-d", "--name", "a", file)
			outs[i] += errs
		})
	}
	group.Wait()
	succeeded := 0
	for i, status := range statuses {
		switch {
		case status == 0 && outs[i] == "a\n":
			succeeded++
		case status != statusUsage || !strings.HasPrefix(outs[i], "loam: a guest with the name a runs"):
			t.Errorf("status %d, %s", status, outs[i])
		}
	}
	if succeeded != 1 {
		t.Errorf("%d commands succeeded", succeeded)
	}
}

// A detached guest uses a disk alone, and releases it at its end.
func TestDetachedGuestHasDisk(t *testing.T) {
	g := newGuests(t)
	file := program(t, waiter)
	image := filepath.Join(t.TempDir(), "d.img")
	run := []string{"run", "--platform", "process", "--net", "none", "--disk", image + ":/data", "--disk-size", "64M", "-d"}
	for range 2 {
		g.prints("a\n", with(run, "--name", "a", file)...)
		g.refuses("--disk: "+image+" is in use", with(run, "--name", "b", file)...)
		g.prints("a\n", "rm", "-f", "a")
	}
	g.empty()
}

// beforeBuild makes a go command in a folder, which runs a shell command before it builds.
func beforeBuild(t *testing.T, folder, command string) {
	t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\n[ \"$1\" != build ] || { " + command + "; }\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(folder, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// If the start cannot be recorded, for example because the file system is full, the guest ends and the reason is printed.
func TestStartIsNotRecorded(t *testing.T) {
	g := newGuests(t)
	folder := t.TempDir()
	beforeBuild(t, folder, "mkdir -p "+g.list+"/loam/a/guest.new")
	cmd := g.loam("run", "--platform", "process", "--net", "none", "-d", "--name", "a", program(t, waiter), "--", "stubborn")
	cmd.Env = append(cmd.Env, "PATH="+folder+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if status := cmd.ProcessState.ExitCode(); status != statusFailed || !strings.HasPrefix(string(out), "loam: the start of the guest cannot be recorded: ") {
		t.Errorf("status %d, %v, %s", status, err, out)
	}
	g.empty()
}

// A signal that arrives before the entry is made is not ignored.
func TestInterruptedBeforeEntry(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interruption(syscall.SIGTERM))
	root := newRoot()
	var errs bytes.Buffer
	root.SetErr(&errs)
	status := execute(ctx, root, []string{"run", "--platform", "process", "--net", "none", program(t, waiter)})
	if status != 143 || errs.String() != "loam: terminated\n" {
		t.Errorf("status %d, %s", status, &errs)
	}
}

// The signal of loam stop does not end a command whose program has ended.
func TestLateKillSignal(t *testing.T) {
	ignoreKillSignal()
	if err := syscall.Kill(os.Getpid(), unikernel.KillSignal); err != nil {
		t.Error(err)
	}
}

// The recorded status is the exit status of the command.
func TestRecordedStatus(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interruption(syscall.SIGTERM))
	for _, c := range []struct {
		status int
		err    error
		want   int
	}{
		{3, nil, 3}, {0, errors.New("x"), statusFailed}, {0, &usageError{"x", "y"}, statusUsage}, {0, context.Canceled, 143},
		{0, &unikernel.Error{}, statusUsage}, {0, &unikernel.Error{Output: "x"}, statusFailed}, {0, exitError(7), 7},
	} {
		if got, _ := result(ctx, c.status, c.err); got != c.want {
			t.Errorf("%d, %v: %d, want %d", c.status, c.err, got, c.want)
		}
	}
}
