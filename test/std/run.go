package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// build builds the loam command without version control information, so that the same source gives the
// same file.
func build(ctx context.Context, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", to, "./cmd/loam")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// withoutCgo returns the environment of both sides.
func withoutCgo() []string { return append(os.Environ(), "CGO_ENABLED=0") }

// list returns the packages that match patterns.
func list(ctx context.Context, patterns []string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...)
	cmd.Env, cmd.Stderr = withoutCgo(), os.Stderr
	out, err := cmd.Output()
	return strings.Fields(string(out)), err
}

// testRun is a run of go test, or of a command that accepts its flags.
type testRun struct {
	side    side
	command []string
	flags   []string // flags of go test in addition to the common ones
	dir     string   // working directory; empty: the current one
	env     []string
	reasons []*reason // the tests that these leave out do not run
}

// run runs packages and keeps the output. A package with a test that is left out runs alone, because -skip applies to
// all packages of a command.
func (r testRun) run(ctx context.Context, k *kept, packages []string) error {
	var together []string
	for _, p := range packages {
		left := leftOut(r.reasons, p)
		if left == "" {
			together = append(together, p)
		} else if err := r.runOnce(ctx, k, []string{p}, "-skip="+left); err != nil {
			return err
		}
	}
	if together == nil {
		return nil
	}
	return r.runOnce(ctx, k, together)
}

// runOnce runs packages by one command with -json and keeps the output. Failing tests are not an error.
func (r testRun) runOnce(ctx context.Context, k *kept, packages []string, flags ...string) error {
	args := slices.Concat(r.command[1:], []string{"-json", "-count=1", "-timeout=30m"}, r.flags, flags, packages)
	cmd := exec.CommandContext(ctx, r.command[0], args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.Stdout, cmd.Stderr = k, os.Stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, p := range packages {
		if k.done[p] == "" {
			return fmt.Errorf("%v: %s was not run to its end: %w", r.command, p, err)
		}
	}
	return nil
}
