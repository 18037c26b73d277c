package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The output of the tests is kept in a folder: one file for the run on Linux and one for the run on Loam, separately for
// full runs and for -short. An interrupted run can be continued from there.

// verdict is the result of a test: "pass", "fail", "skip", or "" if it did not run.
type verdict string

// test identifies a test. Without Name it is the package as a whole.
type test struct{ Package, Name string }

// results are the verdicts of one side (Loam or Linux).
type results map[test]verdict

// outputs are the outputs of the tests of one side (Loam or Linux).
type outputs map[test]string

// side is Loam or Linux.
type side string

const (
	loam  side = "loam"
	linux side = "linux"
)

// file returns the path of the side's output file.
func (s side) file(dir string, short bool) string {
	if short {
		s += "-short"
	}
	return filepath.Join(dir, string(s)+".json")
}

// event is a line of the output of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// ended returns the verdict of the package if e reports its end.
func (e *event) ended() (verdict, bool) {
	switch e.Action {
	case "pass", "fail", "skip":
		return verdict(e.Action), e.Test == ""
	}
	return "", false
}

// origin identifies the builds of Loam and Go for which a folder of outputs was made. A run of other builds does not
// continue it.
type origin struct {
	Loam   string // hash of the loam command
	Go     string
	Pieces int // number of runs that have used the folder
}

const originFile = "origin.json"

// begin prepares the folder for a run. It empties the folder if it is of another build of Loam or of
// Go.
func begin(dir, command string) error {
	program, err := os.ReadFile(command)
	if err != nil {
		return err
	}
	o := origin{Loam: fmt.Sprintf("%x", sha256.Sum256(program)), Go: runtime.Version()}
	last, err := readOrigin(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case last.Loam != o.Loam || last.Go != o.Go:
		for _, s := range []side{loam, linux} {
			for _, short := range []bool{false, true} {
				if err := os.Remove(s.file(dir, short)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
	default:
		o.Pieces = last.Pieces
	}
	o.Pieces++
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, originFile), data, 0o644)
}

func readOrigin(dir string) (o origin, err error) {
	data, err := os.ReadFile(filepath.Join(dir, originFile))
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(data, &o)
}

// piecesOf returns the number of runs that have used a folder.
func piecesOf(dir string) int {
	o, _ := readOrigin(dir)
	return o.Pieces
}

// kept is an output file that a run appends to. It prints a line each time a package has ended.
type kept struct {
	ctx  context.Context // when it ends, the tests are interrupted, and their later output is dropped
	side side
	file *os.File
	done map[string]verdict // packages that have ended
	line []byte             // incomplete last line
}

// openKept opens the file, reads it, and removes an incomplete last line.
func openKept(ctx context.Context, dir string, s side, short bool) (*kept, error) {
	file, err := os.OpenFile(s.file(dir, short), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	k := &kept{ctx: ctx, side: s, file: file, done: map[string]verdict{}}
	data, err := io.ReadAll(file)
	if err == nil {
		whole := bytes.LastIndexByte(data, '\n') + 1
		if err = file.Truncate(int64(whole)); err == nil {
			_, err = file.Seek(int64(whole), io.SeekStart)
		}
		data = data[:whole]
	}
	for line := range bytes.Lines(data) {
		if err == nil {
			_, err = k.note(line)
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return k, nil
}

// note parses a line and records the end of a package.
func (k *kept) note(line []byte) (event, error) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return e, err
	}
	if v, ok := e.ended(); ok {
		k.done[e.Package] = v
	}
	return e, nil
}

// Write implements io.Writer. It appends complete lines to the file.
func (k *kept) Write(p []byte) (int, error) {
	if k.ctx.Err() != nil {
		return len(p), nil
	}
	k.line = append(k.line, p...)
	for {
		i := bytes.IndexByte(k.line, '\n') + 1
		if i == 0 {
			return len(p), nil
		}
		e, err := k.note(k.line[:i])
		if err != nil {
			return 0, fmt.Errorf("%q: %w", k.line[:i], err)
		}
		if _, err := k.file.Write(k.line[:i]); err != nil {
			return 0, err
		}
		if v, ok := e.ended(); ok {
			fmt.Printf("%s: %s %s after %v\n", k.side, e.Package, v, time.Duration(e.Elapsed*float64(time.Second)).Round(time.Second))
		}
		k.line = k.line[i:]
	}
}

// Close closes the file.
func (k *kept) Close() error { return k.file.Close() }

// read returns what is kept of one side for the given packages.
func (o *options) read(dir string, s side, packages []string) (results, outputs, error) {
	all, text := results{}, outputs{}
	wanted := map[string]bool{}
	for _, p := range packages {
		wanted[p] = true
	}
	file, err := os.Open(s.file(dir, o.short))
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	if err := readResults(file, wanted, all, text); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return all, text, nil
}

// readResults reads the output of go test -json for the wanted packages. If a package was run more than
// once, the last run counts.
func readResults(from io.Reader, wanted map[string]bool, r results, printed outputs) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%s: %w", lines.Text(), err)
		}
		if !wanted[e.Package] {
			continue
		}
		switch e.Action {
		case "start":
			for t := range r {
				if t.Package == e.Package {
					delete(r, t)
				}
			}
			for t := range printed {
				if t.Package == e.Package {
					delete(printed, t)
				}
			}
		case "pass", "fail", "skip":
			r[test{e.Package, e.Test}] = verdict(e.Action)
		case "output":
			top, _, _ := strings.Cut(e.Test, "/")
			printed[test{e.Package, top}] += e.Output
		}
	}
	return lines.Err()
}
