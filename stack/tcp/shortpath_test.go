//go:build !race

package tcp

// Paths within a machine or a rack. A round trip takes less than a tenth of a millisecond, so every wait for
// a timer costs hundreds of round trips. Segments arrive in turns, as a shard processes them: all segments
// received in the meantime, and then the connection is polled.
//
// Loss, duplicates and reordering are as in the tests against Linux (TestFaultyYardstick in test/interop), in each
// direction. They apply to frames of 64 kB before these are cut into segments, so a frame is lost or overtaken as a
// whole.

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

func TestSimShortPaths(t *testing.T) {
	const size, runs = 8 << 20, 5
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d transfers of 8 MiB over 5 Gb/s and 40 us, all in one number\n\n", runs)
	fmt.Fprintf(&b, "%-8s %-8s %9s %9s %9s %9s %9s %9s\n", "frames", "faults", "Mb/s", "again", "timeouts", "probes", "recovers", "undone")
	for _, burst := range []int{0, 64 << 10} {
		for _, faults := range []string{"none", "loss", "ackloss", "reorder", "dup", "all"} {
			r := shortPath(t, burst, faults, size, runs)
			fmt.Fprintf(&b, "%-8d %-8s %9.0f %9d %9d %9d %9d %9d\n", burst, faults,
				runs*size*8/r.took.Seconds()/1e6, r.counters[Retransmits], r.counters[Timeouts], r.counters[TailProbes],
				r.counters[FastRecoveries], r.counters[Undos])
		}
	}
	checkGolden(t, "testdata/short.golden", b.Bytes())
}

// shortRuns sums up the results of several transfers.
type shortRuns struct {
	took     time.Duration
	counters Counters
}

func shortPath(t *testing.T, burst int, faults string, size uint64, runs int) (r shortRuns) {
	there := path{rate: 5e9, delay: 20 * time.Microsecond}
	back := there
	for _, p := range []*path{&there, &back} {
		if faults == "loss" || faults == "all" || faults == "ackloss" && p == &back {
			p.loss = 0.01
		}
		if faults == "reorder" || faults == "all" {
			p.overtaken, p.late = 0.01, 10*ms
		}
		if faults == "dup" || faults == "all" {
			p.dup = 0.01
		}
	}
	for seed := range uint64(runs) {
		w := newSim(t, simSetup{
			seed: seed, ab: there, ba: back, bytesA: size, burst: burst, whole: true, turn: 60 * time.Microsecond,
		})
		w.run(time.Hour)
		r.took += w.b.finished - time.Hour
		for i, n := range w.a.counters {
			r.counters[i] += n
		}
	}
	return r
}
