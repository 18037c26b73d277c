//go:build linux

package genbench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"time"

	"loam/gen"
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
	render = flag.Bool("render", false, "write docs/gen from the figures of the last run, with TestRender")
)

func TestMain(m *testing.M) { netns.Main(m) }

// wireUp creates the test bed. It returns the interface, and the destination of the frames.
func wireUp(t testing.TB) (near, dst string, next wire.MAC) {
	t.Helper()
	f := netns.NewFar(t)
	near, _, n := f.WireOf(t, max(2, runtime.NumCPU()))
	dst, next = fmt.Sprintf("10.%d.0.2", n), wire.MAC{2, 0, 0, 0, 0, 0x99}
	toNoHost(t, near, dst, next)
	// Trains of datagrams are segmented before the wire, as by hardware, so that the far end counts
	// frames.
	if out, err := exec.Command("ethtool", "-K", near, "tx-udp-segmentation", "off").CombinedOutput(); err != nil {
		t.Fatalf("ethtool: %v\n%s", err, out)
	}
	return near, dst, next
}

// toNoHost makes the frames for dst go to an Ethernet address that no host has: the far kernel drops them
// on arrival.
func toNoHost(t testing.TB, near, dst string, next wire.MAC) {
	t.Helper()
	netns.IP(t, "neigh", "replace", dst, "lladdr", next.String(), "dev", near, "nud", "permanent")
}

// afresh makes each contestant restore the neighbour entry before its turn: testpmd's net_af_packet removes the
// neighbour entry, and the far kernel would then answer.
func afresh(t testing.TB, all []bench.Contestant, near, dst string, next wire.MAC) {
	for i := range all {
		start := all[i].Start
		all[i].Start = func(ctx context.Context) (*bench.Running, error) {
			toNoHost(t, near, dst, next)
			return start(ctx)
		}
	}
}

// All contestants (methods of Loam and other generators) take turns on one veth pair. Their frames are counted at its
// far end.
func TestBeside(t *testing.T) {
	if race.Enabled {
		t.Skip("the test of package gen/bench runs the same methods")
	}
	near, dst, next := wireUp(t)
	o := bench.Options{Slice: 50 * time.Millisecond, Warm: 10 * time.Millisecond, Rounds: 1}
	queues := []int{1}
	if *full || os.Getenv(peersVariable) != "" {
		queues = queueCounts(runtime.NumCPU())
	}
	if *full {
		o.Slice, o.Warm, o.Rounds = *slice, 150*time.Millisecond, *rounds
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
	c := gen.Config{Interface: near, Streams: []gen.Stream{s}, NextHop: next}
	all, err := bench.Methods(c, nil, queues)
	if err != nil {
		t.Fatal(err)
	}
	c.Float = true
	floating, err := bench.Methods(c, nil, queues)
	if err != nil {
		t.Fatal(err)
	}
	more, wanted := others(t, near, dst)
	defer func(before []aim) { aims = before }(aims)
	aims = append(slices.Clone(aims), wanted...)
	all = paired(append(append(all, peers(t, near, dst)...), more...))
	if *only != "" {
		wanted := regexp.MustCompile(*only)
		all = slices.DeleteFunc(all, func(c bench.Contestant) bool { return !wanted.MatchString(c.Name) })
	}
	afresh(t, all, near, dst, next)
	afresh(t, floating, near, dst, next)
	rows, err := bench.Run(t.Context(), all, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		// A contestant may send nothing in a short turn on a busy machine, so only full runs require a result above
		// 0.
		if r.Error != "" || r.Note != "" || *full && r.Median() <= 0 {
			t.Errorf("%s, %d queue(s): %s %s", r.Name, r.Queues, r.Error, r.Note)
		}
	}
	closely := pairs(t, all, floating, o)
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

// pairTurn is the measured duration of one turn of a contestant in a pair. pairWarm is the time before it that is not
// measured.
const (
	pairTurn = 250 * time.Millisecond
	pairWarm = 150 * time.Millisecond
)

// pairs measures again each method whose speed is close to the speed of its peer, or close to the ratio that is its aim. Only the
// method and its peer run, in many short turns. Each turn has a new process or a new socket, because the placement in memory
// alone can make a difference of a few percent. The result has the keys of the table of aims.
//
// The parameter floating has Loam's methods whose threads may run on every processor. They are compared with peers whose
// threads may, too.
func pairs(t testing.TB, all, floating []bench.Contestant, o bench.Options) map[string][]bench.Row {
	closely := map[string][]bench.Row{}
	for _, a := range aims {
		alone := slices.DeleteFunc(slices.Clone(all), func(c bench.Contestant) bool { return !a.takesPart(c) })
		for i, c := range alone {
			at := slices.IndexFunc(floating, func(f bench.Contestant) bool { return f.Name == c.Name && f.Queues == c.Queues })
			if a.float && at >= 0 {
				alone[i] = floating[at]
			}
		}
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
		closely[a.key()] = rows
	}
	return closely
}

// paired moves contestants that aims compare next to each other, so that they run in similar conditions
// of the machine.
func paired(all []bench.Contestant) []bench.Contestant {
	for _, a := range aims {
		from := slices.IndexFunc(all, func(c bench.Contestant) bool { return a.is(c, a.than) })
		if from < 0 || slices.ContainsFunc(aims, func(b aim) bool { return b.name == a.than }) {
			continue // Loam's methods keep their place in the order
		}
		peer := all[from]
		all = slices.Delete(all, from, from+1)
		to := slices.IndexFunc(all, func(c bench.Contestant) bool { return a.is(c, a.name) })
		all = slices.Insert(all, to+1, peer)
	}
	return all
}

// frameSize is the size in bytes of the smallest frame, FCS included.
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
	// For udp there are also short turns of the pair alone, and only these count.
	closely := map[string][]bench.Row{"udp by " + inC("udp"): {
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

// For the ratio by wall time, only rounds count in which both contestants had their processors. If there are too few of
// them, all rounds count.
func TestQuietRounds(t *testing.T) {
	x := bench.Row{Queues: 1, PPS: []float64{100, 20, 98, 96, 10}, PerCPU: []float64{100, 100, 100, 100, 100}}
	y := bench.Row{Queues: 1, PPS: []float64{50, 50, 49, 48, 50}, PerCPU: []float64{50, 50, 50, 50, 50}}
	if r, quiet := wall(&x, &y); r != 2 || quiet != 3 {
		t.Errorf("%v of %d rounds", r, quiet)
	}
	y.PPS[0] = 5
	// The ratios of the rounds are 20, 0.4, 2, 2 and 0.2. Only the two quiet rounds, with the ratio 2, count.
	if r, quiet := wall(&x, &y); r != 2 || quiet != 2 {
		t.Errorf("%v of %d rounds", r, quiet)
	}
	y.Queues = 2
	if _, quiet := wall(&x, &y); quiet != 0 {
		t.Errorf("%d quiet rounds with half of the processors", quiet)
	}
}

// An aim that is missed is out of reach if a plain loop with the same system calls misses it too.
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
