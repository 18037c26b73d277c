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
}

// run runs packages with -json and keeps the output. Failing tests are not an error.
func (r testRun) run(ctx context.Context, k *kept, packages []string) error {
	args := slices.Concat(r.command[1:], []string{"-json", "-count=1", "-timeout=30m"}, r.flags, packages)
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
