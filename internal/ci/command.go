package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// command is a step that passes if a program exits with 0. Its output is shown
// only if it does not.
func command(name string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		out, err := output(ctx, "", name, args...)
		if err != nil {
			os.Stdout.Write(out)
		}
		return err
	}
}

// output runs a program in dir ("" is here) and returns what it printed, both
// streams in one. The error is short: the output holds the reason.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := program(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return out, cause
		}
		return out, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return out, nil
}

// program prepares a program that ends, with all that it started, when ctx does.
func program(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// vulnerabilities runs govulncheck. Its database is on the network: where that
// cannot be reached nothing is known, which is said and is no failure.
func vulnerabilities(ctx context.Context) error {
	out, err := output(ctx, "", "go", "tool", "govulncheck", "./...")
	switch {
	case err == nil:
		fmt.Println("nothing known")
	case unreachable(out, err):
		fmt.Println("NOT CHECKED: the vulnerability database (vuln.go.dev) cannot be reached from here")
		return nil
	default:
		os.Stdout.Write(out)
	}
	return err
}

// govulncheck exits with 3 when it found something, and with 1 for its own
// troubles.
const vulnerabilityFound = 3

// unreachable reports whether govulncheck failed for want of its database.
func unreachable(out []byte, err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() == vulnerabilityFound {
		return false
	}
	return bytes.Contains(out, []byte("fetching vulnerabilities:"))
}

// peersDir is a module of its own, so that what we measure against never
// becomes a dependency.
const peersDir = "test/bench"

// peers checks that module, and that everything in it can be measured. What
// comes out of one short run says nothing, and is thrown away.
func peers(ctx context.Context) error {
	results, err := os.MkdirTemp("", "loam-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(results)
	for _, args := range [][]string{
		{"vet", everything},
		{"test", everything},
		{"run", ".", "-quick", "-out", results},
		{"run", ".", "-quick", "-guests", "-only", "q35|process", "-out", results},
	} {
		if out, err := output(ctx, peersDir, "go", args...); err != nil {
			os.Stdout.Write(out)
			return err
		}
	}
	return nil
}
