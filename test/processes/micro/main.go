// Command micro measures the costs of the kernel on which it runs: system calls, processes, memory, threads, pipes
// and sockets. It is an ordinary static program of Linux, and prints one line of JSON for each row: its name, and the
// nanoseconds of one operation. The same file runs on Loam and on Linux.
//
//	micro [-span TIME] [-only PREFIX] [-copies N]
//
// Each row runs batches of operations for a span of time, and reports the fastest batch: slower ones include other work
// of the machine. With -copies, N processes run the row at the same time, and the result is the time for one operation
// divided by N: the inverse of the throughput of all.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// Row is the result of one measurement, in the form in which it is printed.
type Row struct {
	Name string
	NS   float64
}

// row is an operation to measure. prepare returns a function that performs n operations, and a function that cleans
// up afterwards.
type row struct {
	name    string
	prepare func() (run func(n int) error, end func(), err error)
}

var (
	span   = flag.Duration("span", 300*time.Millisecond, "how long each row runs")
	only   = flag.String("only", "", "run the rows that begin with this text")
	copies = flag.Int("copies", 1, "processes that run a row at the same time")
	mode   = flag.String("mode", "", "for the program's own use")
)

func main() {
	flag.Parse()
	if *mode == "exit" {
		return
	}
	debug.SetGCPercent(-1) // disables garbage collection, whose threads would disturb the measurement
	for _, r := range rows {
		if !strings.HasPrefix(r.name, *only) {
			continue
		}
		ns, err := r.measureCopies()
		if err != nil {
			fmt.Fprintf(os.Stderr, "micro: %s: %v\n", r.name, err)
			continue
		}
		line, _ := json.Marshal(Row{r.name, ns})
		fmt.Println(string(line))
	}
}

// measure returns the nanoseconds of an operation in the fastest batch.
func (r row) measure() (float64, error) {
	run, end, err := r.prepare()
	if err != nil {
		return 0, err
	}
	defer end()
	n, err := batchOf(run)
	if err != nil {
		return 0, err
	}
	best := time.Duration(1 << 62)
	for stop := time.Now().Add(*span); ; {
		start := time.Now()
		if err := run(n); err != nil {
			return 0, err
		}
		now := time.Now()
		best = min(best, now.Sub(start))
		if now.After(stop) {
			return float64(best.Nanoseconds()) / float64(n), nil
		}
	}
}

// batchOf returns how many operations take some milliseconds, so that reading the clock does not matter.
func batchOf(run func(int) error) (int, error) {
	const enough = 4 * time.Millisecond
	for n := 1; ; n *= 4 {
		start := time.Now()
		if err := run(n); err != nil || time.Since(start) > enough {
			return n, err
		}
	}
}

// measureCopies measures in several processes.
func (r row) measureCopies() (float64, error) {
	if *copies == 1 {
		return r.measure()
	}
	results := make([]int, *copies)
	pids := make([]int, *copies)
	for i := range results {
		var ends [2]int
		if err := pipe(&ends); err != nil {
			return 0, err
		}
		results[i] = ends[0]
		pid, err := fork()
		if err != nil {
			return 0, err
		}
		if pid == 0 {
			ns, err := r.measure()
			if err != nil {
				ns = -1
			}
			sendFloat(ends[1], ns)
			exit(0)
		}
		closeFD(ends[1])
		pids[i] = pid
	}
	rate := 0.0
	for i := range results {
		ns, err := receiveFloat(results[i])
		closeFD(results[i])
		wait(pids[i])
		if err != nil || ns <= 0 {
			return 0, fmt.Errorf("a copy failed: %v", err)
		}
		rate += 1 / ns
	}
	return 1 / rate, nil
}
