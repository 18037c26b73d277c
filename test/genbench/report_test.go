//go:build linux

package genbench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"loam/gen/bench"
	"loam/gen/show"
)

const docs = "../../docs/gen"

// results are the figures of a run, as in docs/gen/results.json.
type results struct {
	Rounds int                    `json:"rounds"`
	Slice  time.Duration          `json:"slice_ns"`
	Rows   []bench.Row            `json:"rows"`
	Pairs  map[string][]bench.Row `json:"pairs"`
	Aims   []outcome              `json:"aims"`
}

// TestRender judges the figures of the last run again and writes docs/gen again, with -render. It is for
// changes of the text or of the rules, and measures nothing.
func TestRender(t *testing.T) {
	if !*render {
		return
	}
	text, err := os.ReadFile(filepath.Join(docs, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r results
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	defer func(before []aim) { aims = before }(aims)
	aims = append(slices.Clone(aims), otherAims()...)
	o := bench.Options{Rounds: cmp.Or(r.Rounds, *rounds), Slice: cmp.Or(r.Slice, *slice)}
	write(t, r.Rows, r.Pairs, judge(r.Rows, r.Pairs), o)
}

// write writes docs/gen.
func write(t *testing.T, rows []bench.Row, closely map[string][]bench.Row, outcomes []outcome, o bench.Options) {
	t.Helper()
	if err := os.MkdirAll(docs, 0o777); err != nil {
		t.Fatal(err)
	}
	var plot bytes.Buffer
	if err := bench.Plot(&plot, "frames of 64 bytes over veth, one processor unless it says more queues", rows); err != nil {
		t.Fatal(err)
	}
	figures, err := json.MarshalIndent(results{o.Rounds, o.Slice, rows, closely, outcomes}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"methods.svg": plot.Bytes(), "results.json": append(figures, '\n'), "README.md": []byte(page(rows, outcomes, o)),
	} {
		if err := os.WriteFile(filepath.Join(docs, name), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// page returns the document.
func page(rows []bench.Row, outcomes []outcome, o bench.Options) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Ways to send, measured

Made by %s: everything below took turns in one run, %d times for %v each, on a
machine of %d processors that other programs used at the same time (Linux %s).
All send the same UDP frame of 64 bytes as fast as they can over one veth pair. The
far end, in another network namespace, drops it at the first look, and its
interface counts: that is *frames a second*, the median of the turns, with the
least and the most. *Per processor* is by the second of processor time that the
sender's process had with all its threads, and the kernel's threads for softirqs, which other programs on the machine change
less. The far end's work on a veth is done on the sender's processor, and is in it unless the
kernel keeps the time of interrupts apart (CONFIG_IRQ_TIME_ACCOUNTING). Ratios are by both, turn by turn.

![bars of the table](methods.svg)

| way to send | queues | frames a second | least | most | per processor |
|---|--:|--:|--:|--:|--:|
`, "`make genbench`", o.Rounds, o.Slice, runtime.NumCPU(), release())
	for i := range rows {
		r := &rows[i]
		least, most := r.Spread()
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s |\n", r.Name, r.Queues, show.Rate(r.Median()), show.Rate(least), show.Rate(most), show.Rate(r.MedianPerCPU()))
	}
	scalingTable(&b, rows)
	b.WriteString("\nWhat we want, and what came of it. That one is no slower than another means within 3 %.\n" + closeNote() + wallNote + "\n| aim | by processor | by the wall | quiet turns | wanted | |\n|---|--:|--:|--:|--:|---|\n")
	for _, o := range outcomes {
		fmt.Fprintf(&b, "| %s by %s | %.2f | %.2f | %d | %.1f | %s |\n", o.Name, o.Than, o.Ratio, o.Wall, o.Quiet, o.Least, o.verdict()+o.bounded())
	}
	b.WriteString(notes)
	return b.String()
}

// wallNote explains the ratios by wall time.
const wallNote = `A quiet turn is one in which both had 0.9 of their processors or more. With three of them, the ratio by
the wall is from these turns. Otherwise it also contains how much processor time each got beside other
programs: a Go program with several threads gets more than one thread does.
`

// closeNote names the ratios that come from pairs.
func closeNote() string {
	var names []string
	for _, a := range aims {
		if a.pairs > 0 {
			names = append(names, fmt.Sprintf("%s (%d pairs)", a.key(), a.pairs))
		}
	}
	return fmt.Sprintf(`What is close is measured once more, the two alone, in turns of %v which begin with ours and
with the other alternately, each with a new process or socket: %s.
`, pairTurn, strings.Join(names, ", "))
}

// scalingTable writes what more queues gain: each is a thread with a processor of its own.
func scalingTable(b *strings.Builder, rows []bench.Row) {
	counts := queueCounts(runtime.NumCPU())
	b.WriteString("\nWith more queues, each a thread with a processor of its own: frames a second, and by one queue, turn by turn.\n\n| way to send |")
	for _, n := range counts {
		fmt.Fprintf(b, " %d |", n)
	}
	b.WriteString(" by one |\n|---|" + strings.Repeat("--:|", len(counts)+1) + "\n")
	for i := range rows {
		one := &rows[i]
		most := find(rows, one.Name, counts[len(counts)-1])
		if one.Queues != 1 || most == nil || most == one {
			continue
		}
		fmt.Fprintf(b, "| %s |", one.Name)
		for _, n := range counts {
			rate := "-"
			if r := find(rows, one.Name, n); r != nil {
				rate = show.Rate(r.Median())
			}
			fmt.Fprintf(b, " %s |", rate)
		}
		fmt.Fprintf(b, " %.2f |\n", ratio(most.PPS, one.PPS))
	}
}

const notes = `
- *in C* are bare loops of the same system calls with the same options
  (` + "`test/genbench/testdata/loops.c`" + `), compiled by gcc.
- *xdp in C* does less than any generator can: its descriptors are written once, all of one frame, and
  nothing but the kernel's work is left. It is the bound of what AF_XDP in copy mode can send.
- trafgen, testpmd and hping3 are Debian's, each on one core. trafgen and testpmd's
  net_af_packet go round the queueing discipline, as our ` + "`ring` and `packet`" + ` do.
- xdp and testpmd's net_af_xdp are in copy mode: a veth has no zero copy.
- udpgso's trains are cut up by the kernel in front of the wire (ethtool -K IF
  tx-udp-segmentation off), so that frames are counted, as behind hardware.
- mmsg sends runs of datagrams of one size, which the kernel cuts up (docs/decisions/0015);
  *mmsg, plain* and *mmsg in C* send one datagram a message.
- loam has two threads a queue, so one queue keeps this machine's processors busy.
- go-pktgen and wireblast are built from their sources, if LOAM_GEN_PEERS names them
  (` + "`test/genbench/others_test.go`" + `). They are bound to no processor, so in their pairs Loam's threads are
  not bound either. go-pktgen's af_xdp sends by all queues, and is compared with xdp by as many.
- [pacing.md](pacing.md): the gaps between frames at low rates, by tcpdump.
- [full.md](full.md): a minute at half rate without a loss, and 100 runs that were killed.
- Aims with more queues than one are by the time of the wall.
`

// release returns the version of the kernel.
func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
