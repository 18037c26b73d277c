//go:build linux

package genbench

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"time"

	"loam/gen/bench"
	"loam/internal/netns"
	"loam/internal/race"
	"loam/wire"
)

var (
	full   = flag.Bool("full", false, "measure long enough for figures that mean something")
	rounds = flag.Int("rounds", 9, "with -full: how often each has its turn")
	slice  = flag.Duration("slice", 400*time.Millisecond, "with -full: how long each turn is")
	only   = flag.String("only", "", "only those whose names match this expression")
	update = flag.Bool("update", false, "write docs/gen")
)

func TestMain(m *testing.M) { netns.Main(m) }

// wireUp makes the test bed: where frames go, and by which interface.
func wireUp(t testing.TB) (near, dst string, next wire.MAC) {
	t.Helper()
	f := netns.NewFar(t)
	near, _, n := f.WireOf(t, max(2, runtime.NumCPU()))
	dst, next = fmt.Sprintf("10.%d.0.2", n), wire.MAC{2, 0, 0, 0, 0, 0x99}
	nobody(t, near, dst, next)
	// Trains of datagrams are cut up before the wire, as by hardware, so that the far
	// end counts frames.
	if out, err := exec.Command("ethtool", "-K", near, "tx-udp-segmentation", "off").CombinedOutput(); err != nil {
		t.Fatalf("ethtool: %v\n%s", err, out)
	}
	return near, dst, next
}

// nobody has frames for dst go to an address of Ethernet that nobody has: the far kernel
// looks at it and drops.
func nobody(t testing.TB, near, dst string, next wire.MAC) {
	t.Helper()
	netns.IP(t, "neigh", "replace", dst, "lladdr", next.String(), "dev", near, "nud", "permanent")
}

// afresh has each contestant find the wire as it was: testpmd's net_af_packet leaves it
// without the neighbor, and from then on the far kernel would answer.
func afresh(t testing.TB, all []bench.Contestant, near, dst string, next wire.MAC) {
	for i := range all {
		start := all[i].Start
		all[i].Start = func(ctx context.Context) (*bench.Running, error) {
			nobody(t, near, dst, next)
			return start(ctx)
		}
	}
}

// Everything takes its turns on one wire, and is counted at its far end.
func TestBeside(t *testing.T) {
	if race.Enabled {
		t.Skip("the test of package gen/bench runs the same methods")
	}
	near, dst, next := wireUp(t)
	o := bench.Options{Slice: 50 * time.Millisecond, Warm: 10 * time.Millisecond, Rounds: 1}
	queues := []int{1}
	if *full {
		o.Slice, o.Warm, o.Rounds = *slice, 150*time.Millisecond, *rounds
		queues = queueCounts(runtime.NumCPU())
		o.Progress = func(text string) { t.Log(text) }
	}
	var err error
	if o.Peer, err = bench.Peer(near); err != nil {
		t.Fatal(err)
	}
	s, err := bench.Stream(dst, frameSize, false)
	if err != nil {
		t.Fatal(err)
	}
	all, err := bench.Methods(near, s, next, nil, queues)
	if err != nil {
		t.Fatal(err)
	}
	all = paired(append(all, peers(t, near, dst)...))
	if *only != "" {
		wanted := regexp.MustCompile(*only)
		all = slices.DeleteFunc(all, func(c bench.Contestant) bool { return !wanted.MatchString(c.Name) })
	}
	afresh(t, all, near, dst, next)
	rows, err := bench.Run(t.Context(), all, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		// In a short turn on a busy machine nothing need happen.
		if r.Error != "" || r.Note != "" || *full && r.Median() <= 0 {
			t.Errorf("%s, %d queue(s): %s %s", r.Name, r.Queues, r.Error, r.Note)
		}
	}
	closely := pairs(t, all, o)
	outcomes := judge(rows, closely)
	for _, o := range outcomes {
		t.Log(o)
	}
	if len(outcomes) < len(aims) && *only == "" {
		t.Errorf("%d of %d aims could be judged", len(outcomes), len(aims))
	}
	if *update {
		write(t, rows, closely, outcomes, o)
	}
}

// pairTurn and pairWarm are how long a turn of a pair is, and what goes before it.
const (
	pairTurn = 250 * time.Millisecond
	pairWarm = 150 * time.Millisecond
)

// pairs measures what is nearly as fast as what it is compared with once more, the two
// alone, or with the aim's bound: in short turns, many of them, each of a new process or a
// new socket, since a few percent are also what it makes where in memory things come to lie.
// The result is by the name of ours.
func pairs(t testing.TB, all []bench.Contestant, o bench.Options) map[string][]bench.Row {
	closely := map[string][]bench.Row{}
	for _, a := range aims {
		alone := slices.DeleteFunc(slices.Clone(all), func(c bench.Contestant) bool { return !a.takesPart(c) })
		if a.pairs == 0 || len(alone) < 2 {
			continue
		}
		if *full {
			o.Slice, o.Warm, o.Rounds = pairTurn, pairWarm, a.pairs
		}
		rows, err := bench.Run(t.Context(), alone, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Error != "" {
				t.Errorf("%s: %s", r.Name, r.Error)
			}
		}
		closely[a.name] = rows
	}
	return closely
}

// paired puts what aims compare next to one another, so that they have the machine
// in the same mood.
func paired(all []bench.Contestant) []bench.Contestant {
	for _, a := range aims {
		from := slices.IndexFunc(all, func(c bench.Contestant) bool { return c.Name == a.than && c.Queues == 1 })
		if from < 0 || slices.ContainsFunc(aims, func(b aim) bool { return b.name == a.than }) {
			continue // one of our methods stays where it is
		}
		peer := all[from]
		all = slices.Delete(all, from, from+1)
		to := slices.IndexFunc(all, func(c bench.Contestant) bool { return c.Name == a.name && c.Queues == 1 })
		all = slices.Insert(all, to+1, peer)
	}
	return all
}

// frameSize is that of the smallest frame, FCS included.
const frameSize = 64

// An aim is judged by the median of the rounds' ratios.
func TestJudge(t *testing.T) {
	rows := []bench.Row{
		{Name: "udp", Queues: 1, PerCPU: []float64{10, 10, 10}, PPS: []float64{8, 8, 8}},
		{Name: "udp", Queues: 2, PerCPU: []float64{10, 10, 10}, PPS: []float64{7, 16, 15}},
		{Name: "mmsg", Queues: 1, PerCPU: []float64{19, 21, 30}},
		{Name: "udpgso", Queues: 1, PerCPU: []float64{30, 19, 19}},
		{Name: inC("udp"), Queues: 1, PerCPU: []float64{10.2, 10.1, 50}},
	}
	want := map[string]bool{"udp": true, "mmsg": true, "udpgso": false, "udp, 2 queues": true}
	// Of udp there are turns of the two alone too, and these count.
	closely := map[string][]bench.Row{"udp": {
		{Name: "udp", Queues: 1, PerCPU: []float64{10, 10, 10}}, {Name: inC("udp"), Queues: 1, PerCPU: []float64{10.4, 10.4, 10}},
	}}
	if o := judge(rows, closely)[0]; o.Name != "udp" || o.Met {
		t.Errorf("%v", o)
	}
	got := judge(rows, nil)
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for _, o := range got {
		if o.Met != want[o.Name] {
			t.Errorf("%v", o)
		}
	}
}

// What is missed is out of reach where a loop that does nothing else misses it too.
func TestOutOfReach(t *testing.T) {
	row := func(name string, pps float64) bench.Row {
		return bench.Row{Name: name, Queues: 1, PerCPU: []float64{pps}, PPS: []float64{pps}}
	}
	for want, bound := range map[string]float64{"missed": 112, "missed, and out of reach here": 105} {
		rows := []bench.Row{row("xdp", 104), row(testpmdX, 100), row(inC("xdp"), bound)}
		if o := judge(rows, nil); len(o) != 1 || o[0].verdict() != want {
			t.Errorf("%v, want %s", o, want)
		}
	}
}
