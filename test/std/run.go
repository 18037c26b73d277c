package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// build builds the loam command. Nothing of the tree's history is in it: the same source
// makes the same file.
func build(ctx context.Context, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", to, "./cmd/loam")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// withoutCgo is the environment of both sides.
func withoutCgo() []string { return append(os.Environ(), "CGO_ENABLED=0") }

// list is the packages that patterns stand for.
func list(ctx context.Context, patterns []string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...)
	cmd.Env, cmd.Stderr = withoutCgo(), os.Stderr
	out, err := cmd.Output()
	return strings.Fields(string(out)), err
}

// runTests runs go test -json, or a command that takes its flags, and keeps what it
// prints. That tests fail is no error.
func runTests(ctx context.Context, k *kept, short bool, packages []string, command ...string) error {
	args := append(command[1:len(command):len(command)], "-json", "-count=1", "-timeout=30m")
	if short {
		args = append(args, "-short")
	}
	cmd := exec.CommandContext(ctx, command[0], append(args, packages...)...)
	cmd.Env = withoutCgo()
	cmd.Stdout, cmd.Stderr = k, os.Stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, p := range packages {
		if k.done[p] == "" {
			return fmt.Errorf("%v: %s was not run to its end: %w", command, p, err)
		}
	}
	return nil
}
