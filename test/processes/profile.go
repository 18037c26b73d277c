//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// With -profile, one row runs on Loam only, and a plugin of QEMU (testdata/counter.c) counts the instructions of each
// function. With -rings, rows of redis and nginx run on Linux, and the plugin counts the instructions of the programs (ring 3)
// and of the kernel (ring 0).

//go:embed testdata/counter.c
var counterSource []byte

// Numbers of instructions. The plugin waits until programs have executed warm instructions (warmServer from the start of the
// client of a server), and counts the next sample instructions.
const (
	warm       = 5_000_000
	warmServer = 30_000_000
	warmDisk   = 1_000_000
	sample     = 100_000_000
	sampleLong = 3_000_000_000 // for a command with many programs
)

// running is printed by a machine whose server has started, or which begins to execute the command of a row.
const running = "the-server-is-running"

// start prints running.
const start = "\necho " + running + "\n"

// buildCounting compiles the plugin, and builds the machines. Every machine that starts then counts, and writes its result to the
// file with the returned name.
func buildCounting(ctx context.Context, dir string) (b *built, result string, err error) {
	source, library := filepath.Join(dir, "counter.c"), filepath.Join(dir, "counter.so")
	if err := os.WriteFile(source, counterSource, 0o644); err != nil {
		return nil, "", err
	}
	if err := command(ctx, "gcc", "-O2", "-shared", "-fPIC", "-o", library, source); err != nil {
		return nil, "", err
	}
	result = filepath.Join(dir, "counted")
	err = replaceEmulator(dir, fmt.Sprintf("-icount shift=0,sleep=off -rtc clock=vm -plugin %s,out=%s", library, result))
	if err != nil {
		return nil, "", err
	}
	b, err = build(ctx, dir)
	return b, result, err
}

// profile prints the functions of Loam in which a row spends its instructions, and how often they are called.
func profile(ctx context.Context, dir, row string) error {
	count, err := profiledCPUs()
	if err != nil {
		return err
	}
	b, result, err := buildCounting(ctx, dir)
	if err != nil {
		return err
	}
	w := workload{name: row, command: endless(row)}
	if w.command[0] != "/micro" {
		w.warm = warmServer
	}
	if *only == onDisk {
		if w, err = b.endlessDisk(row); err != nil {
			return err
		}
	}
	w.cpus = count
	p, err := b.counted(ctx, onLoam, w, result)
	if err != nil {
		return err
	}
	fmt.Print(p)
	return nil
}

// profiledCPUs returns the number of CPUs of the machine that is profiled: the value of -cpus, or 1 without the flag.
func profiledCPUs() (int, error) {
	if *cpus == flag.Lookup("cpus").DefValue {
		return 1, nil
	}
	n, err := strconv.Atoi(*cpus)
	if err != nil {
		return 0, fmt.Errorf("-cpus %s: %w", *cpus, err)
	}
	return n, nil
}

// counted runs a workload until the plugin has written its result.
func (b *built) counted(ctx context.Context, kernel string, w workload, result string) (*profiled, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	os.Remove(result)
	os.Remove(result + ".start")
	if w.disk != nil {
		if err := b.newDisk(ctx, w); err != nil {
			return nil, err
		}
	}
	cmd := b.onLoam(ctx, max(w.cpus, 1), w)
	cmd.Args = slices.Insert(cmd.Args, 2, "--keep-root") // the emulator writes the result
	if kernel == onLinux {
		var err error
		if cmd, err = b.onLinux(ctx, max(w.cpus, 1), w); err != nil {
			return nil, err
		}
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // a server in the machine may ignore SIGINT
	output, err := os.Create(filepath.Join(b.dir, "output"))
	if err != nil {
		return nil, err
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			text, _ := os.ReadFile(output.Name())
			return nil, fmt.Errorf("%s on %s ended too early: %v: %s", w.name, kernel, err, text)
		case <-time.After(100 * time.Millisecond):
		}
		if text, _ := os.ReadFile(output.Name()); w.command[0] == "/micro" || bytes.Contains(text, []byte(running)) {
			if err := w.startCounting(result + ".start"); err != nil {
				return nil, err
			}
		}
		if exists(result) {
			cancel()
			<-ended
			return readProfile(result)
		}
	}
}

// startCounting creates the file at which the plugin begins to count. The file has the numbers of instructions.
func (w *workload) startCounting(name string) error {
	text := fmt.Sprintln(cmp.Or(w.warm, warm), cmp.Or(w.sample, sample))
	if err := os.WriteFile(name+"~", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(name+"~", name)
}

// endless returns a command that runs a row until it is killed: a row of micro, or one of redis or nginx by its name in the table.
func endless(row string) []string {
	words := strings.Fields(strings.ReplaceAll(row, ",", " "))
	served := func(server, client string) []string { return shell(server + start + client) }
	switch {
	case len(words) >= 4 && words[0] == "redis": // redis GET, 50 clients, pipelines of 16
		return served(redisServer, fmt.Sprintf("/usr/bin/redis-benchmark -t %s -c %s -n 100000000 -P %s", strings.ToLower(words[1]), words[2], pipeline(words)))
	case len(words) >= 7 && words[0] == "nginx": // nginx, file of 1 KiB, 64 connections
		server, _, _ := strings.Cut(nginxServer, "until ") // the test of readiness would take a second
		return served(server+"/usr/bin/sleep 1", fmt.Sprintf("/usr/bin/wrk -t 1 -c %s -d %ds http://127.0.0.1:8080/%s", words[5], int(patience.Seconds()), words[3]+words[4]))
	}
	return []string{"/micro", "-only", row, "-span", patience.String()}
}

// pipeline returns the number of requests in a pipeline of redis: the last word of a row's name, or 1.
func pipeline(words []string) string {
	if n := words[len(words)-1]; len(words) > 4 {
		return n
	}
	return "1"
}

// profiled is the numbers of instructions by function.
type profiled struct {
	of    map[string]int
	calls map[string]int
	total int
}

// ring3 is the name that the plugin gives all programs.
const ring3 = "ring3"

// kernel returns the number of instructions in ring 0.
func (p *profiled) kernel() int { return p.total - p.of[ring3] }

// readProfile reads the result of the plugin: a line with the number, the calls and the name of each function.
func readProfile(path string) (*profiled, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &profiled{of: map[string]int{}, calls: map[string]int{}}
	for line := range strings.Lines(string(text)) {
		var n, calls int
		if _, err := fmt.Sscan(line, &n, &calls); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		name := strings.TrimPrefix(strings.SplitN(strings.TrimSpace(line), " ", 3)[2], "loamguest/")
		p.of[name] += n
		p.calls[name] += calls
		p.total += n
	}
	return p, nil
}

// names returns the functions, most instructions first.
func (p *profiled) names() []string {
	return slices.SortedFunc(maps.Keys(p.of), func(a, b string) int {
		return cmp.Or(p.of[b]-p.of[a], strings.Compare(a, b))
	})
}

// String returns a table, most instructions first.
func (p *profiled) String() string {
	const least = 0.001 // smallest share that is printed
	var b strings.Builder
	fmt.Fprintf(&b, "%d instructions, of which %.1f %% in ring 3\n", p.total, 100*float64(p.of[ring3])/float64(p.total))
	for _, name := range p.names() {
		if share := float64(p.of[name]) / float64(p.total); share >= least {
			fmt.Fprintf(&b, "%6.2f %% %9d calls %s\n", 100*share, p.calls[name], name)
		}
	}
	return b.String()
}

// replaceEmulator puts a folder at the front of PATH. Its qemu-system-x86_64 is a script that calls QEMU, with further
// options if QEMU runs a machine.
func replaceEmulator(dir, options string) error {
	real, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		return err
	}
	bin := filepath.Join(dir, "bin")
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in\n*-smp*) exec %s \"$@\" %s ;;\nesac\nexec %s \"$@\"\n", real, options, real)
	// The loam command starts the emulator as a user without privileges. That user must be able to read the script.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(bin, "qemu-system-x86_64"), []byte(script), 0o755); err != nil {
		return err
	}
	return os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}
