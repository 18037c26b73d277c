//go:build !race

// This file is not built for the race detector, which slows these tests to minutes, and other runs of the simulation
// cover the same code.

package tcp

// Throughputs of the simulation, kept as golden tables.
//
// To accept new ones: go test ./stack/tcp -run 'SimTable|SimShort' -update

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"loam/stack/tcp/congestion"
)

var update = flag.Bool("update", false, "write the golden tables")

func TestSimTable(t *testing.T) {
	const rate, size, runs = 50e6, 4 << 20, 2
	for _, cc := range []struct {
		name string
		make func() Congestion
	}{{"cubic", congestion.NewCubic}, {"reno", congestion.NewReno}} {
		var b bytes.Buffer
		fmt.Fprintf(&b, "Mb/s of %d transfers of 4 MiB by %s over 50 Mb/s\n\n", runs, cc.name)
		fmt.Fprintf(&b, "%-9s %-9s %8s %8s %8s %8s\n", "RTT", "queue", "loss 0", "0.1 %", "1 %", "5 %")
		for _, rtt := range []time.Duration{2 * ms, 20 * ms, 100 * ms} {
			for _, queue := range []int{30_000, 150_000, 600_000} {
				fmt.Fprintf(&b, "%-9v %-9d", rtt, queue)
				for _, loss := range []float64{0, 0.001, 0.01, 0.05} {
					p := path{rate: rate, delay: rtt / 2, queue: queue, loss: loss}
					var took time.Duration
					for seed := range uint64(runs) {
						w := newSim(t, simSetup{seed: seed, ab: p, ba: path{rate: rate, delay: rtt / 2},
							bytesA: size, cfgA: Config{Congestion: cc.make}})
						w.run(10 * time.Minute)
						took += w.b.finished - time.Hour
					}
					fmt.Fprintf(&b, " %8.2f", runs*size*8/took.Seconds()/1e6)
				}
				fmt.Fprintln(&b)
			}
		}
		checkGolden(t, "testdata/throughput-"+cc.name+".golden", b.Bytes())
	}
}

func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is now\n%s\nit was\n%s", name, got, want)
	}
}
