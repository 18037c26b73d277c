// Package cost measures what a system call costs a program on Loam, beside what
// the same call costs the same program on Linux.
//
// The program is calls, unmodified, and built twice: for Loam, and by go build
// for Linux. The two run in turn, several times, so that whatever else the machine
// does falls on both; of each call the least of all rounds is kept. Both write to
// /dev/null, on Loam to Loam's own.
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
	"loam/unikernel/guest"
)

//go:embed calls/main.go
var source []byte

// Options says how long to measure. The zero value is good.
type Options struct {
	Rounds int           // how often each system has its turn; 0: 5
	Each   time.Duration // for one call in one round; 0: 20 ms
}

// Row is one call. Times are nanoseconds.
type Row struct {
	Call  string  `json:"call"`
	What  string  `json:"what"`
	Linux float64 `json:"linux_ns"`
	Loam  float64 `json:"loam_ns"`
	Ratio float64 `json:"ratio"` // Linux / Loam: how many times cheaper it is on Loam
}

// Result is what was measured.
type Result struct {
	Rows []Row `json:"rows"`
	// Hook is what Loam adds to a call before any work is done, in nanoseconds:
	// a call that Loam answers out of its table, less a call of an empty function.
	Hook   float64 `json:"hook_ns"`
	Rounds int     `json:"rounds"`
}

// Names of calls as the program prints them, with what each stands for.
const (
	nothing = "nothing"
	refused = "epoll_create1"
)

var descriptions = []struct{ call, what string }{
	{nothing, "an empty function"},
	{refused, "refused by both with EINVAL: no work"},
	{"write", "syscall.Write, 1 byte, to /dev/null"},
	{"read", "syscall.Read from /dev/null"},
	{"file.write", "os.File.Write, 1 byte, to /dev/null"},
	{"getppid", "Linux's on both"},
}

// Measure builds the program and runs it on both.
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
		if err := linux.measure(exec.CommandContext(ctx, onLinux, os.DevNull, o.Each.String())); err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, onLoam, os.DevNull, o.Each.String())
		cmd.Env = append(os.Environ(), guest.Variable+"="+guest.Config{}.Encode())
		if err := loam.measure(cmd); err != nil {
			return nil, err
		}
	}
	return compare(linux, loam, o.Rounds), nil
}

// build makes the program for Linux and for Loam, in that order, out of its
// source, which is laid down in dir: a loam without a checkout has no other.
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

// costs are nanoseconds by call.
type costs map[string]float64

// measure runs the program once and keeps what is less than before.
func (c costs) measure(cmd *exec.Cmd) error {
	out, err := cmd.Output()
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

// compare makes the rows.
func compare(linux, loam costs, rounds int) *Result {
	r := &Result{Hook: loam[refused] - loam[nothing], Rounds: rounds}
	for _, d := range descriptions {
		row := Row{Call: d.call, What: d.what, Linux: linux[d.call], Loam: loam[d.call]}
		row.Ratio = row.Linux / row.Loam
		r.Rows = append(r.Rows, row)
	}
	return r
}
