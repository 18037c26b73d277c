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

// command returns a step that runs a program and passes if it exits with status 0. The output is shown
// only on failure.
func command(name string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		out, err := output(ctx, "", name, args...)
		if err != nil {
			os.Stdout.Write(out)
		}
		return err
	}
}

// vet is the step that runs go vet. Files with the tag race are vetted too.
func vet(ctx context.Context) error {
	if err := command("go", "vet", everything)(ctx); err != nil {
		return err
	}
	return command("go", "vet", "-tags=race", everything)(ctx)
}

// output runs a program in dir ("" is the current folder) and returns its standard output and standard
// error together. The error is short: the output holds the reason.
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

// program prepares a program. When ctx ends, the program and all its children are killed.
func program(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// vulnerabilities runs govulncheck, which needs a database on the network. If the database cannot be
// reached, the step says so and passes.
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

// vulnerabilityFound is govulncheck's exit status if it found something. For its own errors it is 1.
const vulnerabilityFound = 3

// unreachable reports whether govulncheck failed because it could not reach its database.
func unreachable(out []byte, err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() == vulnerabilityFound {
		return false
	}
	return bytes.Contains(out, []byte("fetching vulnerabilities:"))
}

// peersDir is a separate module. So the programs that Loam is compared with never become dependencies of Loam.
const peersDir = "test/bench"

// peers tests the module in peersDir and checks that every measurement in it can run. The results of this short
// run are discarded, because they are not accurate.
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
