// Command calls measures the cost of system calls to the program that makes them. It does not depend on
// Loam. Its arguments are the path of a device that discards what is written, and the time per call. It
// prints nanoseconds by call as JSON. Package cost builds it twice, and runs it on Loam and on Linux.
//
//	calls /dev/null 20ms
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"
)

func main() {
	if err := measure(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "calls:", err)
		os.Exit(1)
	}
}

func measure(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("got %q; want a device and a time, such as /dev/null 20ms", args)
	}
	each, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	f, err := os.OpenFile(args[0], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	costs := map[string]float64{}
	for name, call := range calls(f, int(f.Fd())) {
		if err := call(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		costs[name] = least(each, call)
	}
	return json.NewEncoder(os.Stdout).Encode(costs)
}

// calls returns the measured calls by name. A call returns an error if it fails, since the time of a failing call is
// not comparable.
func calls(f *os.File, fd int) map[string]func() error {
	b := make([]byte, 1)
	return map[string]func() error{
		"nothing": func() error { return nil },
		"epoll_create1": func() error {
			if _, err := syscall.EpollCreate1(-1); err != syscall.EINVAL {
				return fmt.Errorf("%v, and it should be refused", err)
			}
			return nil
		},
		"write":      func() error { _, err := syscall.Write(fd, b); return err },
		"read":       func() error { _, err := syscall.Read(fd, b); return err },
		"file.write": func() error { _, err := f.Write(b); return err },
		"getppid":    func() error { syscall.Getppid(); return nil },
	}
}

// batch is the number of calls timed together, which makes the cost of reading the clock negligible.
const batch = 1000

// least measures one call for d, in batches. It returns the time per call of the fastest batch, in nanoseconds: slower
// batches include other activity of the machine.
func least(d time.Duration, call func() error) float64 {
	best := time.Duration(1 << 62)
	for end := time.Now().Add(d); ; {
		start := time.Now()
		for range batch {
			call()
		}
		now := time.Now()
		best = min(best, now.Sub(start))
		if now.After(end) {
			return float64(best.Nanoseconds()) / batch
		}
	}
}
