//go:build linux

package genbench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"loam/gen/show"
	"loam/internal/netns"
	"loam/internal/race"
)

// TestPacing measures the gaps between frames at low rates, by tcpdump's time stamps at the far end of a veth. Two
// senders run in turns: loam gen, and a plain loop in C that polls the clock. The loop shows which precision is
// possible on this machine with its present load.

// pacedRates are the rates in frames per second.
var pacedRates = []int{1, 10, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000}

// gaps are quantiles of the gaps of a turn, relative to the requested gap.
type gaps struct {
	P1     float64 `json:"p1"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

// held reports whether the median is within 1 %, and 98 of 100 gaps are within 5 %.
func (g gaps) held() bool {
	return g.Median >= 0.99 && g.Median <= 1.01 && g.P1 >= 0.95 && g.P99 <= 1.05
}

// width returns the distance between the quantiles.
func (g gaps) width() float64 { return g.P99 - g.P1 }

func (g gaps) String() string { return fmt.Sprintf("%.3f | %.3f | %.3f", g.P1, g.Median, g.P99) }

// pacedRow is the result for one rate: the gaps of each turn.
type pacedRow struct {
	Rate int    `json:"rate"`
	Ours []gaps `json:"loam"`
	InC  []gaps `json:"in_c"`
}

// best returns the gaps of the turn in which they vary least.
func best(all []gaps) gaps {
	return slices.MinFunc(all, func(a, b gaps) int {
		switch {
		case a.width() < b.width():
			return -1
		case a.width() > b.width():
			return 1
		}
		return 0
	})
}

func (r *pacedRow) verdict() string {
	switch ours, bound := best(r.Ours), best(r.InC); {
	case ours.held():
		return "held"
	case !bound.held() && ours.width() <= 1.25*bound.width():
		return "as evenly as the loop"
	}
	return "missed"
}

func TestPacing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector takes longer than the gaps are")
	}
	f := netns.NewFar(t)
	near, far, n := f.Wire(t)
	dir := t.TempDir()
	loops, loam := filepath.Join(dir, "loops"), filepath.Join(dir, "loam")
	for _, build := range [][]string{{"gcc", "-O2", "-o", loops, "testdata/loops.c"}, {"go", "build", "-o", loam, "loam/cmd/loam"}} {
		if out, err := exec.Command(build[0], build[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	rates, turns := []int{1000}, 1
	if *full {
		rates, turns = pacedRates, 7
	}
	var rows []pacedRow
	for _, rate := range rates {
		row := pacedRow{Rate: rate}
		count := min(max(rate, 12), max(5000, rate/5)) // at high rates a fifth of a second, so that the start does not dominate
		if rate < 100 {
			count = 12 * min(rate, 5)
		}
		turns := turns
		if rate < 100 {
			turns = min(turns, 2)
		}
		for range turns {
			capture := filepath.Join(dir, "paced.pcap")
			row.Ours = append(row.Ours, measureGaps(t, f, far, capture, rate, count, loam, "gen", "--dev", near, "--dst", fmt.Sprintf("10.%d.0.2", n),
				"--dst-mac", "02:00:00:00:00:99", "--rate", fmt.Sprintf("%dpps", rate), "--count", strconv.Itoa(count)))
			row.InC = append(row.InC, measureGaps(t, f, far, capture, rate, count, loops, "paced", near, strconv.Itoa(int(time.Second)/rate), strconv.Itoa(count)))
		}
		t.Logf("%s: loam %v, in C %v: %s", show.Rate(float64(rate)), best(row.Ours), best(row.InC), row.verdict())
		rows = append(rows, row)
	}
	if *update {
		writePacing(t, rows)
	}
}

// measureGaps captures with tcpdump at the far end while a command sends count frames.
func measureGaps(t *testing.T, f *netns.Far, far, capture string, rate, count int, args ...string) gaps {
	t.Helper()
	c := exec.Command("tcpdump", "-i", far, "-w", capture, "-Z", "root", "-s", "64", "-B", "8192", "--time-stamp-precision=nano", "-c", strconv.Itoa(count), "udp dst port 9")
	errs, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	f.Do(t, func() { err = c.Start() })
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(errs)
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, "listening") {
		t.Fatalf("%q, %v", line, err)
	}
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	timer := time.AfterFunc(20*time.Second, func() { c.Process.Kill() })
	defer timer.Stop()
	io.Copy(io.Discard, r)
	if err := c.Wait(); err != nil {
		t.Fatal("tcpdump has not seen all frames: ", err)
	}
	return readGaps(t, capture, rate)
}

// readGaps reads the time stamps of a capture.
func readGaps(t *testing.T, name string, rate int) gaps {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := pcapgo.NewReader(bufio.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var all []float64
	for before := (time.Time{}); ; {
		_, info, err := r.ZeroCopyReadPacketData()
		if err != nil {
			break
		}
		if !before.IsZero() {
			all = append(all, info.Timestamp.Sub(before).Seconds()*float64(rate))
		}
		before = info.Timestamp
	}
	if len(all) == 0 {
		t.Fatal("no gap was captured")
	}
	slices.Sort(all)
	at := func(q float64) float64 { return all[int(q*float64(len(all)-1)+0.5)] }
	return gaps{at(0.01), at(0.5), at(0.99)}
}

// writePacing writes the table of gaps between frames into docs/gen.
func writePacing(t *testing.T, rows []pacedRow) {
	t.Helper()
	var b strings.Builder
	b.WriteString(`# Gaps between frames

This page is made by ` + "`make genbench`" + `. ` + "`loam gen`" + ` sends at low rates, in turns with a loop in C that only
polls the clock and sends. tcpdump records the times of the frames at the far end of a veth. The gap between two frames is
divided by the gap that the rate requires; the table shows the median of these ratios, and their quantiles of 1 % and 99 %.
Other programs use the machine, so for each sender the table shows the turn whose quantiles are nearest to each other.
"Held" means that the median of the ratios is within 1 % of 1, and both quantiles are within 5 % of 1.

| rate | gap of loam gen / required gap: 1 % quantile | loam gen: median | loam gen: 99 % quantile | gap of the loop in C / required gap: 1 % quantile | loop in C: median | loop in C: 99 % quantile | result of loam gen |
|--:|--:|--:|--:|--:|--:|--:|---|
`)
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(&b, "| %s | %v | %v | %s |\n", show.Rate(float64(r.Rate)), best(r.Ours), best(r.InC), r.verdict())
	}
	b.WriteString("\nAll turns, as JSON:\n\n```\n")
	for _, r := range rows {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	b.WriteString("```\n")
	if err := os.WriteFile(filepath.Join(docs, "pacing.md"), []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}
