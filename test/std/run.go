package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// verdict is how a test ended: "pass", "fail", "skip", or "" if it did not run.
type verdict string

// test names a test; without Name it is the package as a whole.
type test struct{ Package, Name string }

// results are the verdicts of one side.
type results map[test]verdict

// build builds the loam command.
func build(ctx context.Context, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", to, "./cmd/loam")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// runTests runs go test, or a command that takes its flags. That tests fail is
// no error.
func runTests(ctx context.Context, short bool, patterns []string, command ...string) (results, error) {
	args := append(command[1:], "-json", "-count=1", "-timeout=15m")
	if short {
		args = append(args, "-short")
	}
	cmd := exec.CommandContext(ctx, command[0], append(args, patterns...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r, err := readResults(out)
	io.Copy(io.Discard, out)
	waitErr := cmd.Wait()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(r) == 0 {
		return nil, fmt.Errorf("%v: no test has run: %w", command, waitErr)
	}
	return r, nil
}

// readResults reads what go test -json prints (go doc test2json).
func readResults(from io.Reader) (results, error) {
	r := results{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Action, Package, Test string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		switch e.Action {
		case "pass", "fail", "skip":
			r[test{e.Package, e.Test}] = verdict(e.Action)
		}
	}
	return r, lines.Err()
}
