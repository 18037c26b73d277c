// Package cost compares the cost of system calls for a program on Loam and on Linux.
//
// The program is command calls, unmodified, built twice: for Loam, and with go build for Linux. The two run
// alternately, several times, so that other load on the machine affects both. For each call, the minimum
// over all rounds is kept. Both write to /dev/null; on Loam that is Loam's own device.
package cost

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"loam/unikernel"
)

//go:embed calls/main.go
var source []byte

// Options sets the length of a measurement. The zero value uses the defaults.
type Options struct {
	Rounds int           // number of runs on each system; 0: 5
	Each   time.Duration // time for one call in one round; 0: 20 ms
}

// Row is the result for one call. Times are in nanoseconds.
type Row struct {
	Call  string  `json:"call"`
	What  string  `json:"what"`
	Linux float64 `json:"linux_ns"`
	Loam  float64 `json:"loam_ns"`
	Ratio float64 `json:"ratio"` // time on Linux divided by time on Loam: above 1, the call is cheaper on Loam
}

// Result is the result of a measurement.
type Result struct {
	Rows []Row `json:"rows"`
	// Hook is the cost that Loam adds to a call before any work is done, in nanoseconds. It is the cost of
	// a call that Loam rejects from its table, minus the cost of calling an empty function.
	Hook   float64 `json:"hook_ns"`
	Rounds int     `json:"rounds"`
}

// Names of the two calls from which the cost of the hook in package syscall is computed, as the program prints them.
const (
	nothing = "nothing"
	refused = "epoll_create1"
)

// descriptions holds the measured calls in the order of the rows.
var descriptions = []struct{ call, what string }{
	{nothing, "an empty function"},
	{refused, "refused by both with EINVAL: no work"},
	{"write", "syscall.Write, 1 byte, to /dev/null"},
	{"read", "syscall.Read from /dev/null"},
	{"file.write", "os.File.Write, 1 byte, to /dev/null"},
	{"getppid", "Linux's on both"},
}

// Measure builds the program and runs it on both systems.
func Measure(ctx context.Context, o Options) (*Result, error) {
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.Each == 0 {
		o.Each = 20 * time.Millisecond
	}
	dir, err := os.MkdirTemp("", "loam-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	onLinux, onLoam, err := build(ctx, dir)
	if err != nil {
		return nil, err
	}
	linux, loam := costs{}, costs{}
	for range o.Rounds {
		if err := linux.measure(exec.CommandContext(ctx, onLinux, os.DevNull, o.Each.String()).Output()); err != nil {
			return nil, err
		}
		if err := loam.measure(unikernel.Capture(ctx, onLoam, os.DevNull, o.Each.String())); err != nil {
			return nil, err
		}
	}
	return compare(linux, loam, o.Rounds), nil
}

// build builds the program for Linux and for Loam, and returns the executables in that order. It writes the
// embedded source to dir, because an installed loam has no checkout.
func build(ctx context.Context, dir string) (onLinux, onLoam string, err error) {
	main := filepath.Join(dir, "calls.go")
	if err := os.WriteFile(main, source, 0o600); err != nil {
		return "", "", err
	}
	plan, err := unikernel.NewPlan(ctx, unikernel.Target{Args: []string{main}})
	if err != nil {
		return "", "", err
	}
	if err := plan.Build(ctx); err != nil {
		return "", "", err
	}
	onLinux = filepath.Join(dir, "calls")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", onLinux, main)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("go build for Linux: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return onLinux, plan.Program, nil
}

// costs holds the time of each call in nanoseconds, by name.
type costs map[string]float64

// measure parses the program's output. For each call it keeps the smaller of the old and the new value.
func (c costs) measure(out []byte, err error) error {
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return fmt.Errorf("the program that measures: %w", err)
	}
	var once costs
	if err := json.Unmarshal(out, &once); err != nil {
		return fmt.Errorf("the program that measures printed %q: %w", out, err)
	}
	for call, ns := range once {
		if best, there := c[call]; !there || ns < best {
			c[call] = ns
		}
	}
	return nil
}

// compare computes the rows of the result, and the cost of the hook in package syscall, from the costs on both systems.
func compare(linux, loam costs, rounds int) *Result {
	r := &Result{Hook: loam[refused] - loam[nothing], Rounds: rounds}
	for _, d := range descriptions {
		row := Row{Call: d.call, What: d.what, Linux: linux[d.call], Loam: loam[d.call]}
		row.Ratio = row.Linux / row.Loam
		r.Rows = append(r.Rows, row)
	}
	return r
}
