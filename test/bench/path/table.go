package path

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Row is one path with one congestion control algorithm.
type Row struct {
	Path      Path
	Algorithm string
	Rates     [4]float64 // rates of payload in bits per second, in the order of Pairs: medians of all repetitions
}

// Aim is the least share of Linux's rate that Loam should reach.
const Aim = 0.9

// Run measures each row for which the function pick returns true. It repeats each measurement reps times. The
// measurements of one row alternate between the pairs, so that other load on the machine affects all of them alike.
// If their rate is low enough, several rows are measured at the same time. Each row is logged when it is finished.
func Run(pick func(*Row) bool, reps int, log io.Writer) (rows []Row, err error) {
	var algorithms []string
	for _, a := range Algorithms {
		if KernelHas(a) {
			algorithms = append(algorithms, a)
		} else {
			fmt.Fprintf(log, "this kernel has no %s\n", a)
		}
	}
	for _, p := range Paths() {
		for _, a := range algorithms {
			if r := (Row{Path: p, Algorithm: a}); pick(&r) {
				rows = append(rows, r)
			}
		}
	}
	var mu sync.Mutex // guards err and log
	var wait sync.WaitGroup
	defer wait.Wait()
	room := make(chan struct{}, abreast) // semaphore of the rows in progress; a row above abreastRate takes all places
	for i := range rows {
		r := &rows[i]
		share := 1
		if r.Path.Rate > abreastRate {
			share = abreast
		}
		for range share {
			room <- struct{}{}
		}
		wait.Go(func() {
			e := r.measure(reps)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				err = e
			}
			fmt.Fprintln(log, r)
			for range share {
				<-room
			}
		})
	}
	wait.Wait()
	return rows, err
}

// abreast is the number of rows measured at the same time, if their rate is at most abreastRate (bits
// per second).
const (
	abreast     = 2
	abreastRate = 100e6
)

// measure measures a row and stores the median of each pair. In one repetition, all pairs lose the same
// frames.
func (r *Row) measure(reps int) error {
	var rates [len(r.Rates)][]float64
	for rep := range reps {
		for i := range Pairs {
			i = (i + rep) % len(Pairs) // the first pair changes from repetition to repetition
			rate, err := Measure(r.Path, Pairs[i], r.Algorithm, uint64(rep+1))
			if err != nil {
				return fmt.Errorf("%v, %s, %s to %s: %w", r.Path, r.Algorithm, Pairs[i].From, Pairs[i].To, err)
			}
			rates[i] = append(rates[i], rate)
		}
	}
	for i, all := range rates {
		slices.Sort(all)
		r.Rates[i] = all[len(all)/2]
	}
	return nil
}

// Share returns how much of Linux's rate Loam reaches as the sender: the lower of its rates to Loam and to Linux,
// divided by the rate from Linux to Linux.
func (r *Row) Share() float64 { return min(r.Rates[1], r.Rates[2]) / r.Rates[0] }

// Name returns the name of the row, like "IPv4, 100 Mbit/s, 10ms, 0.1 %, cubic".
func (r *Row) Name() string { return fmt.Sprintf("%v, %s", r.Path, r.Algorithm) }

func (r *Row) String() string {
	text := r.Name() + ":"
	for _, rate := range r.Rates {
		text += fmt.Sprintf(" %.1f", rate/1e6)
	}
	return text + " Mbit/s"
}

// Write writes the rows as a table.
func Write(w io.Writer, rows []Row, machine string) {
	fmt.Fprintf(w, "# Long and lossy paths\n\n%s\n\n", strings.TrimSpace(`
The table shows the payload rate of one TCP connection over an emulated network path, in Mbit/s. All figures are from one
run (`+machine+`). "go run . -paths" in test/bench makes this page, and test/bench/path emulates
the paths. The column "path" is the rate of the path. The column "bound" is the highest possible payload rate: the rate of
the path without headers and lost packets. The columns "A to B" have the rate with A as the sender and B as the receiver.
The column "share" compares Loam with Linux as the sender: it is the smaller of "Loam to Loam" and "Loam to Linux", divided
by "Linux to Linux". To compare Loam with Linux as the receiver, compare "Linux to Loam" with "Linux to Linux".`))
	fmt.Fprintln(w, "| IP version | path, Mbit/s | round trip | loss | congestion control | bound, Mbit/s | Linux to Linux, Mbit/s | Loam to Loam, Mbit/s | Loam to Linux, Mbit/s | share (Loam / Linux as the sender) | Linux to Loam, Mbit/s |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|")
	for _, r := range rows {
		fmt.Fprintf(w, "| %s | %d | %v | %.1f %% | %s | %.1f | %.1f | %.1f | %.1f | %.2f | %.1f |\n",
			r.Path.packets(), r.Path.Rate/1e6, r.Path.RTT, r.Path.Loss*100, r.Algorithm, r.Path.Bound()/1e6,
			r.Rates[0]/1e6, r.Rates[1]/1e6, r.Rates[2]/1e6, r.Share(), r.Rates[3]/1e6)
	}
}
