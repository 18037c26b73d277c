// Command differences runs one program on Linux, as a process of Loam and in a virtual machine of Loam, and writes the
// table of its differences, docs/differences.md. The program (testdata/probe) makes system calls and uses other services
// of the kernel, and prints a line for each. A difference needs a reason in reasons.txt, and a reason needs a difference.
//
//	go run ./test/differences
//
// As root, the program runs on Linux as user 65534, as it does on Loam.
package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// report is the file that the command writes, as a path from the root of the tree.
const report = "docs/differences.md"

//go:embed reasons.txt
var reasonsText string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	text, err := differences(ctx, ".")
	if err == nil {
		err = os.WriteFile(report, []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "differences:", err)
		os.Exit(1)
	}
}

// unprivileged is the user of a program that root starts.
const unprivileged = 65534

// differences runs the program on Linux, as a process and in a virtual machine, and returns the report. root is the
// path of the tree.
func differences(ctx context.Context, root string) (string, error) {
	dir, err := os.MkdirTemp("", "differences-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	loam, plain := filepath.Join(dir, "loam"), filepath.Join(dir, "probe")
	source := filepath.Join(root, "test/differences/testdata/probe")
	if err := build(ctx, root, loam, "./cmd/loam"); err != nil {
		return "", err
	}
	if err := build(ctx, source, plain, "."); err != nil {
		return "", err
	}
	onLinux := exec.CommandContext(ctx, plain)
	if os.Geteuid() == 0 {
		onLinux.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	}
	commands := [...]*exec.Cmd{
		onLinux,
		exec.CommandContext(ctx, loam, "run", "--net", "none", "--platform", "process", "."),
		exec.CommandContext(ctx, loam, "run", "--net", "none", "--platform", "vm", "-m", "1G", "."),
	}
	var all [len(commands)]answers
	for i, cmd := range commands {
		cmd.Dir = source
		if all[i], err = ask(cmd); err != nil {
			return "", err
		}
	}
	return table(all[0], all[1], all[2], reasonsText)
}

func build(ctx context.Context, dir, to, what string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", to, what)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w: %s", what, err, out)
	}
	return nil
}

// answers are the results of all probes on one system, in the form in which the program prints them.
type answers struct {
	names []string // names of the probes, in the program's order
	given map[string]string
}

// ask runs the program with the probes, and returns the answers that it prints.
func ask(cmd *exec.Cmd) (answers, error) {
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return answers{}, fmt.Errorf("%s: %w: %.2000s", strings.Join(cmd.Args, " "), err, &problems)
	}
	a := answers{given: map[string]string{}}
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		if name, answer, ok := strings.Cut(lines.Text(), "\t"); ok {
			a.names = append(a.names, name)
			a.given[name] = answer
		}
	}
	return a, nil
}

// reason explains the differences of the probes whose names begin with one of its prefixes.
type reason struct {
	text     string
	prefixes []string
	rows     []string // rows of the table
}

// parseReasons reads reasons.txt: a line with a reason, and below it, indented, the prefixes of names.
func parseReasons(text string) (all []*reason) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '\t':
			r := all[len(all)-1]
			r.prefixes = append(r.prefixes, line[1:])
		default:
			all = append(all, &reason{text: line})
		}
	}
	return all
}

// table returns the report. Errors: a difference without a reason, and a prefix without a difference.
func table(linux, process, machine answers, reasons string) (string, error) {
	all := parseReasons(reasons)
	used := map[string]bool{}
	var problems []string
	different := 0
	for _, name := range linux.names {
		want, p, m := linux.given[name], process.given[name], machine.given[name]
		if p == want && m == want {
			continue
		}
		different++
		row := fmt.Sprintf("| %s | %s | %s | %s |", cell(name), cell(want), same(p, want), same(m, want))
		r, prefix := reasonFor(all, name)
		if r == nil {
			problems = append(problems, "no reason: "+row)
			continue
		}
		used[prefix] = true
		r.rows = append(r.rows, row)
	}
	for _, r := range all {
		for _, prefix := range r.prefixes {
			if !used[prefix] {
				problems = append(problems, "no difference: "+prefix)
			}
		}
	}
	if problems != nil {
		return "", fmt.Errorf("%s: change test/differences/reasons.txt, or Loam:\n%s", report, strings.Join(problems, "\n"))
	}
	var b strings.Builder
	fmt.Fprintf(&b, head, len(linux.names), different)
	for _, r := range all {
		fmt.Fprintf(&b, "\n%s\n\n| probe | result on Linux (ok or errno, then the values that were read) | result on Loam as a process, if different | result on Loam in a virtual machine, if different |\n|---|---|---|---|\n%s\n", r.text, strings.Join(r.rows, "\n"))
	}
	return b.String(), nil
}

const head = `# Differences between Linux, a process and a machine

This page is written by "go run ./test/differences", and its test checks it. One program makes %d probes of the kernel: on
Linux, on Loam as a process (--platform process) and on Loam in a virtual machine (--platform vm). It runs as a user without
privilege. A probe makes one or a few system calls, or reads a file. The tables show the %d probes with different results. Each table has the probes with one reason, and the
text above the table gives the reason. A result is "ok" or an errno, and then the values that the probe has read. An empty field
means that the result is the same as on Linux.
`

// reasonFor returns the first reason with a prefix of a name, and that prefix.
func reasonFor(all []*reason, name string) (*reason, string) {
	for _, r := range all {
		i := slices.IndexFunc(r.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
		if i >= 0 {
			return r, r.prefixes[i]
		}
	}
	return nil, ""
}

// same returns the text for a cell of the table: the answer, or "" if it equals the answer on Linux.
func same(answer, linux string) string {
	if answer == linux {
		return ""
	}
	if answer == "" {
		return "nothing"
	}
	return cell(answer)
}

// cell replaces the characters of a text that would end a cell of a Markdown table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\x00", `\0`).Replace(strings.TrimSpace(s))
}
