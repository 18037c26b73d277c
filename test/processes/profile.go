//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// With -profile, one row runs on Loam only, and for a short time the emulator logs the address of each
// instruction (QEMU's command singlestep, with which a block is one instruction, and its log of executed blocks). The result is exact: the number of instructions in
// each function, per system call.

const (
	profileCalls = 100 // smallest number of system calls in a usable trace
	traceFor     = time.Second
	traceTries   = 60
	tracePause   = 2 * time.Second // pause before a trace, until the program runs at its usual speed
)

// profile prints the functions of Loam in which a row of micro spends its instructions.
func profile(ctx context.Context, dir, row string) error {
	monitor, trace := filepath.Join(dir, "monitor"), filepath.Join(dir, "trace")
	if err := replaceEmulator(dir, "-icount shift=0,sleep=off -rtc clock=vm -monitor unix:"+monitor+",server,nowait"); err != nil {
		return err
	}
	b, err := build(ctx, dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w := workload{command: endless(row), disk: *only == onDisk}
	if w.disk {
		w.command = append(w.command, "-dir", nested)
		if err := b.newDisk(ctx, w); err != nil {
			return err
		}
	}
	cmd := b.onLoam(ctx, 1, w)
	cmd.Args = slices.Insert(cmd.Args, 2, "--keep-root") // the emulator writes the trace
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer cancel()
	c, err := dial(ctx, monitor)
	if err != nil {
		return fmt.Errorf("%w: %s", err, output.Bytes())
	}
	defer c.Close()
	go io.Copy(io.Discard, c) // discards the monitor's prompts
	time.Sleep(*after)
	fmt.Fprintln(c, "singlestep on")      // the machine starts without it, many times as fast
	fmt.Fprintln(c, "one-insn-per-tb on") // the name since QEMU 8.1
	for range traceTries {
		time.Sleep(tracePause)
		fmt.Fprintf(c, "logfile %s\n", trace)
		fmt.Fprintln(c, "log nochain,exec")
		time.Sleep(traceFor)
		fmt.Fprintln(c, "log none")
		time.Sleep(traceFor)
		p, err := readTrace(trace)
		if err != nil {
			return err
		}
		if p.calls >= profileCalls {
			fmt.Print(p)
			return nil
		}
		os.Remove(trace)
		trace += "+" // the emulator reopens its log only under another name
	}
	return fmt.Errorf("%s makes too few system calls: %s", row, output.Bytes())
}

// endless returns a command that runs a row until it is killed: a row of micro, or one of redis or nginx by its name in the table.
func endless(row string) []string {
	words := strings.Fields(strings.ReplaceAll(row, ",", " "))
	shell := func(start, client string) []string {
		return []string{"/usr/bin/dash", "-c", start + "\n" + client}
	}
	switch {
	case len(words) >= 4 && words[0] == "redis": // redis GET, 50 clients, pipelines of 16
		return shell(redisServer, fmt.Sprintf("/usr/bin/redis-benchmark -t %s -c %s -n 100000000 -P %s", strings.ToLower(words[1]), words[2], pipeline(words)))
	case len(words) >= 7 && words[0] == "nginx": // nginx, file of 1 KiB, 64 connections
		return shell(nginxServer, fmt.Sprintf("/usr/bin/wrk -t 1 -c %s -d %ds http://127.0.0.1:8080/%s", words[5], int(patience.Seconds()), words[3]+words[4]))
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

// dial connects to a socket that is created soon.
func dial(ctx context.Context, path string) (net.Conn, error) {
	for {
		c, err := net.Dial("unix", path)
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// profiled is the instructions of a trace by function.
type profiled struct {
	of    map[string]int
	total int
	calls int // system calls from ring 3
}

const (
	ring3     = "the program, in ring 3"
	callEntry = "runtime.loamTrap"
)

// executed matches an instruction in QEMU's log: its address and the name of its function.
var executed = regexp.MustCompile(`^Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/\S+\] ?(\S*)`)

func readTrace(path string) (*profiled, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &profiled{of: map[string]int{}}
	last := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m := executed.FindSubmatch(lines.Bytes())
		if m == nil {
			continue
		}
		addr, err := strconv.ParseUint(string(m[1]), 16, 64)
		name := strings.TrimPrefix(string(m[2]), "loamguest/")
		switch {
		case err != nil:
			continue
		case addr>>47 == 0:
			name = ring3
		case name == "":
			name = "others"
		}
		if name == callEntry && last == ring3 {
			p.calls++
		}
		p.of[name]++
		p.total++
		last = name
	}
	return p, nil
}

// String returns a table, most instructions first.
func (p *profiled) String() string {
	names := make([]string, 0, len(p.of))
	for name := range p.of {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if n := p.of[b] - p.of[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	var b strings.Builder
	per := func(n int) float64 { return float64(n) / float64(p.calls) }
	fmt.Fprintf(&b, "%9.1f instructions per system call, of %d calls\n", per(p.total), p.calls)
	for _, name := range names {
		if per(p.of[name]) >= 1 {
			fmt.Fprintf(&b, "%9.1f %s\n", per(p.of[name]), name)
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
