package path

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// Row is one path with one congestion control algorithm.
type Row struct {
	Path      Path
	Algorithm string
	Rates     [3]float64 // of Pairs, in bits per second; 0: not measured
}

// Aim is the least share of Linux's rate that Loam should reach.
const Aim = 0.9

// Run measures all paths of at most the rate most, in bits per second. The measurements of one path and
// algorithm run one after another, so that other load on the machine affects all of them alike. If
// their rate is low enough, several rows are measured at the same time. Each row is logged when it is
// finished.
func Run(most int64, log io.Writer) (rows []Row, err error) {
	var algorithms []string
	for _, a := range Algorithms {
		if KernelHas(a) {
			algorithms = append(algorithms, a)
		} else {
			fmt.Fprintf(log, "this kernel has no %s\n", a)
		}
	}
	for _, p := range Paths() {
		if p.Rate <= most {
			for _, a := range algorithms {
				rows = append(rows, Row{Path: p, Algorithm: a})
			}
		}
	}
	var mu sync.Mutex // guards err and log
	var wait sync.WaitGroup
	defer wait.Wait()
	room := make(chan struct{}, abreast) // Run sends when a row starts, and the row receives when it ends: its length is the load in progress
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
			e := r.measure()
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

func (r *Row) measure() error {
	for i, pair := range Pairs {
		rate, err := Measure(r.Path, pair, r.Algorithm)
		if err != nil {
			return fmt.Errorf("%v, %s, %s to %s: %w", r.Path, r.Algorithm, pair.From, pair.To, err)
		}
		r.Rates[i] = rate
	}
	return nil
}

// Share returns the ratio of Loam's lower rate to Linux's rate.
func (r *Row) Share() float64 { return min(r.Rates[1], r.Rates[2]) / r.Rates[0] }

func (r *Row) String() string {
	return fmt.Sprintf("%v, %s: %.1f %.1f %.1f Mbit/s", r.Path, r.Algorithm, r.Rates[0]/1e6, r.Rates[1]/1e6, r.Rates[2]/1e6)
}

// Write writes the rows as a table.
func Write(w io.Writer, rows []Row, machine string) {
	fmt.Fprintf(w, "# Long and lossy paths\n\n%s\n\n", strings.TrimSpace(`
Megabits of payload a second of one connection over an emulated path, in one run (`+machine+`). The bound is the
rate less headers, less what is lost. "Share" is the lesser of Loam's two figures over Linux's. Made by
"go run . -paths" in test/bench; see test/bench/path for what the paths are made of.`))
	fmt.Fprintln(w, "| Mbit/s | round trip | loss | | bound | Linux to Linux | Loam to Loam | Loam to Linux | share |")
	fmt.Fprintln(w, "|---:|---:|---:|---|---:|---:|---:|---:|---:|")
	for _, r := range rows {
		fmt.Fprintf(w, "| %d | %v | %.1f %% | %s | %.1f | %.1f | %.1f | %.1f | %.2f |\n", r.Path.Rate/1e6, r.Path.RTT, r.Path.Loss*100,
			r.Algorithm, r.Path.Bound()/1e6, r.Rates[0]/1e6, r.Rates[1]/1e6, r.Rates[2]/1e6, r.Share())
	}
}
