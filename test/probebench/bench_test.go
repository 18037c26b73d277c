//go:build linux

package probebench

import (
	"flag"
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"loam/internal/race"
)

var (
	full    = flag.Bool("full", false, "ask 8.4 million addresses, several times")
	targets = flag.String("targets", "10.0.0.0/9", "with -full: whom to ask")
	rounds  = flag.Int("rounds", 3, "with -full: how often each has its turn")
	update  = flag.Bool("update", false, "write docs/probe")
)

// few is the prefix that contains the targets of the short run.
const few = "10.0.0.0/18"

// row is the result of one prober over all its turns.
type row struct {
	Name string `json:"name"`
	Runs []run  `json:"runs"`
}

// median returns the median of a figure over all runs of the prober.
func (r *row) median(figure func(run) float64) float64 {
	var all []float64
	for _, one := range r.Runs {
		all = append(all, figure(one))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// scene is one set of conditions for a comparison: how many addresses answer, and how busy the machine is.
type scene struct {
	Name string `json:"name"`
	bits int    // how many bits longer the answering prefix is than the probed prefix
	part int    // with -full, how many bits longer the probed prefix is than in the first scene
	busy int    // busy loops per processor that run beside the probers
	// Asked is the number of probed addresses.
	Asked uint64 `json:"asked"`
	Rows  []row  `json:"rows"`
	// Bound is the upper bound for any prober: see bound_test.go.
	Bound row `json:"bound"`
	// Ratios compare Loam with each other prober.
	Ratios []outcome `json:"ratios"`
}

// In the first scene all addresses answer, so most of the work is in the replies. If few addresses answer, most of the
// work is in the probes. If other programs use the processors too, replies have to wait, and a prober without room for
// them loses them.
var scenes = []scene{
	{Name: "all addresses answer"},
	{Name: "one in 128 answers", bits: 7},
	{Name: "all addresses answer, on a busy machine", part: 2, busy: 2},
}

// All probers probe the same addresses in turn. Loam finds every address that answers, in every turn;
// the others may lose some.
func TestBeside(t *testing.T) {
	if race.Enabled {
		t.Skip("what is measured are programs without the race detector")
	}
	prefix := netip.MustParsePrefix(few)
	if *full {
		prefix = netip.MustParsePrefix(*targets)
	}
	dir := prepare(t)
	for i := range scenes {
		s := &scenes[i]
		if s.busy > 0 && !*full {
			continue // without -full, this would repeat the first scene
		}
		t.Run(s.Name, func(t *testing.T) { s.play(t, dir, prefix) })
	}
	if *update && !t.Failed() {
		write(t, scenes, prefix)
	}
}

// play runs all probers in turn.
func (s *scene) play(t *testing.T, dir string, prefix netip.Prefix) {
	turns, limit := 1, time.Minute
	if *full {
		turns, limit = *rounds, 15*time.Minute
		prefix = netip.PrefixFrom(prefix.Addr(), prefix.Bits()+s.part)
		occupy(t, s.busy*runtime.NumCPU())
	}
	l := newLab(t, dir, prefix, netip.PrefixFrom(prefix.Addr(), prefix.Bits()+s.bits))
	read := l.counter(t)
	s.Rows = make([]row, len(contestants))
	asked := uint64(1) << (32 - prefix.Bits())
	answering := asked >> s.bits
	s.Asked = asked
	for range turns {
		for i, c := range contestants {
			r := l.run(t, c, read, limit)
			t.Logf("%-8s %9d sent in %6.2f s (%.0f a second), %9d found, %.0f a second, %.0f a second of processor time",
				c.name, r.Sent, r.Sending, r.SentRate(), r.Found, r.Rate(), r.PerCPU())
			// A prober that probes silent addresses only once may lose one. In a short turn on a busy
			// machine, the others may lose all.
			loam := c.name == "loam"
			if nothing := r.Found == 0 && (loam || *full); loam && r.Sent < asked || nothing || loam && s.bits == 0 && r.Found != answering {
				t.Errorf("%s: %d probes, %d of %d found", c.name, r.Sent, r.Found, answering)
			}
			s.Rows[i].Name = c.name
			s.Rows[i].Runs = append(s.Rows[i].Runs, r)
		}
		r := l.bound(t, read)
		t.Logf("%-8s %9d sent in %6.2f s (%.0f a second), %9d answers, %.0f a second, %.0f a second of processor time",
			"bound", r.Sent, r.Sending, r.SentRate(), r.Found, r.Rate(), r.PerCPU())
		s.Bound.Name, s.Bound.Runs = "bound", append(s.Bound.Runs, r)
	}
	s.Ratios = judge(s.Rows, &s.Bound)
	for _, o := range s.Ratios {
		t.Log(o)
	}
}

// occupy runs n busy loops until the test ends.
func occupy(t *testing.T, n int) {
	for range n {
		c := exec.Command("sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	}
}

// outcome is how much better Loam is than a peer: the ratio of each turn, and the median of these.
type outcome struct {
	Than   string  `json:"than"`
	Found  float64 `json:"found"`   // ratio of addresses found per second
	PerCPU float64 `json:"per_cpu"` // ratio of addresses found per second of processor time
	Sent   float64 `json:"sent"`    // ratio of probes sent per second
	Bound  float64 `json:"bound"`   // ratio of the bound's addresses per second to the peer's
	Met    bool    `json:"met"`     // the aim for the addresses found per second is met
}

// wanted is how many times as many addresses per second Loam should find.
const wanted = 5

// String formats the outcome.
func (o outcome) String() string {
	return fmt.Sprintf("%s: %.2f found, %.2f found per processor second, %.2f sent, %.2f the bound: %s", o.Than, o.Found, o.PerCPU, o.Sent, o.Bound, o.verdict())
}

// verdict reports whether the aim is met, and whether any prober could meet it.
func (o outcome) verdict() string {
	switch {
	case o.Met:
		return "met"
	case o.Bound < wanted:
		return "missed, and out of reach here"
	}
	return "missed"
}

// judge compares the first row (Loam), and the bound, with the other rows.
func judge(rows []row, bound *row) (all []outcome) {
	for _, peer := range rows[1:] {
		ratio := func(runs []run, figure func(run) float64) float64 {
			var list []float64
			for i := range peer.Runs {
				list = append(list, figure(runs[i])/figure(peer.Runs[i]))
			}
			slices.Sort(list)
			return list[len(list)/2]
		}
		ours := rows[0].Runs
		o := outcome{
			Than: peer.Name, Found: ratio(ours, run.Rate), PerCPU: ratio(ours, run.PerCPU), Sent: ratio(ours, run.SentRate),
			Bound: ratio(bound.Runs, run.Rate),
		}
		o.Met = o.Found >= wanted
		all = append(all, o)
	}
	return all
}

// A ratio compares the runs of one turn, and the median over the turns counts.
func TestJudge(t *testing.T) {
	rows := []row{
		{"loam", []run{{100, 100, 1, 1}, {100, 100, 2, 1}, {100, 100, 1, 4}}},
		{"zmap", []run{{100, 50, 5, 1}, {100, 50, 20, 2}, {100, 100, 3, 4}}},
	}
	bound := row{"bound", []run{{100, 200, 1, 1}, {100, 200, 1, 1}, {100, 200, 1, 1}}}
	got := judge(rows, &bound)
	if want := (outcome{Than: "zmap", Found: 10, PerCPU: 2, Sent: 5, Bound: 20, Met: true}); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for want, o := range map[string]outcome{
		"met": {Found: 5, Bound: 6, Met: true}, "missed": {Found: 4, Bound: 5}, "missed, and out of reach here": {Found: 4, Bound: 4.9},
	} {
		if got := o.verdict(); got != want {
			t.Errorf("%+v: %s, want %s", o, got, want)
		}
	}
}
