package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// verdict is how a test ended: "pass", "fail", "skip", or "" if it did not run.
type verdict string

// test names a test; without Name it is the package as a whole.
type test struct{ Package, Name string }

// results are the verdicts of one side.
type results map[test]verdict

// outputs are what the tests of one side have printed.
type outputs map[test]string

// build builds the loam command.
func build(ctx context.Context, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", to, "./cmd/loam")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// Files in which what the tests print is kept.
const (
	loamFile  = "loam.json"
	linuxFile = "linux.json"
)

// runTests runs go test -json, or a command that takes its flags, into a file.
// That tests fail is no error.
func runTests(ctx context.Context, keep string, short bool, patterns []string, command ...string) error {
	file, err := os.Create(keep)
	if err != nil {
		return err
	}
	defer file.Close()
	args := append(command[1:], "-json", "-count=1", "-timeout=15m")
	if short {
		args = append(args, "-short")
	}
	cmd := exec.CommandContext(ctx, command[0], append(args, patterns...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = file, os.Stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if size, _ := file.Seek(0, io.SeekEnd); size == 0 {
		return fmt.Errorf("%v: no test has run: %w", command, err)
	}
	return nil
}

// readKept reads such a file.
func readKept(dir, name string) (results, outputs, error) {
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	return readResults(file)
}

// readResults reads what go test -json prints (go doc test2json).
func readResults(from io.Reader) (results, outputs, error) {
	r, printed := results{}, outputs{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Action, Package, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		switch e.Action {
		case "pass", "fail", "skip":
			r[test{e.Package, e.Test}] = verdict(e.Action)
		case "output":
			top, _, _ := strings.Cut(e.Test, "/")
			printed[test{e.Package, top}] += e.Output
		}
	}
	return r, printed, lines.Err()
}
