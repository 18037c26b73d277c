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

This page is made by %s. All senders below took turns in one run, %d times for %v each, on a
machine of %d processors that other programs used at the same time (Linux %s).
Each sender sends the same UDP frame of 64 bytes as fast as possible over one veth pair. The far end is in another
network namespace and drops every frame as early as possible; its interface counts the frames. The columns with *frames a
second* have the median of this count over all turns, and the counts of the slowest and of the fastest turn. The last column has
the number of frames for each second of processor time, of all threads of the sender's process and of Linux's softirq
threads. Other programs on the machine affect this figure less than the rates. On a veth the sender's processor also does the
work of the far end. That work is included, unless Linux accounts for interrupts separately
(CONFIG_IRQ_TIME_ACCOUNTING). Ratios of both figures are computed for each turn.

![bars of the table](methods.svg)

| sender: a method of loam gen, or another program | queues | frames a second, median | frames a second, slowest turn | frames a second, fastest turn | frames for each second of processor time |
|---|--:|--:|--:|--:|--:|
`, "`make genbench`", o.Rounds, o.Slice, runtime.NumCPU(), release())
	for i := range rows {
		r := &rows[i]
		least, most := r.Spread()
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s |\n", r.Name, r.Queues, show.Rate(r.Median()), show.Rate(least), show.Rate(most), show.Rate(r.MedianPerCPU()))
	}
	scalingTable(&b, rows)
	b.WriteString("\nThe next table shows which aims are met. An aim is the required ratio of the speeds of two senders. The aim 1.0 (not slower) allows a difference of 3 %.\n" + closeNote() + wallNote + "\n| sender A to sender B | speed of A divided by speed of B, by processor time | speed of A divided by speed of B, by elapsed time | quiet turns | required ratio | result |\n|---|--:|--:|--:|--:|---|\n")
	for _, o := range outcomes {
		fmt.Fprintf(&b, "| %s to %s | %.2f | %.2f | %d | %.1f | %s |\n", o.Name, o.Than, o.Ratio, o.Wall, o.Quiet, o.Least, o.verdict()+o.bounded())
	}
	b.WriteString(notes)
	return b.String()
}

// wallNote is the text of the report that explains the ratios by wall time.
const wallNote = `In a quiet turn, both senders ran for at least 0.9 of the time on their processors. If there are three quiet turns, only these
count for the ratio by elapsed time. Otherwise the ratio by elapsed time also depends on other programs: a Go program with
several threads gets a larger share of a busy machine than a program with one thread.
`

// closeNote returns the text of the report that lists the ratios measured in pairs.
func closeNote() string {
	var names []string
	for _, a := range aims {
		if a.pairs > 0 {
			names = append(names, fmt.Sprintf("%s (%d pairs)", strings.Replace(a.key(), " by ", " and ", 1), a.pairs))
		}
	}
	return fmt.Sprintf(`Pairs of senders with close results are measured again alone, in turns of %v. The two senders alternate in going first, and
each turn starts a new process or socket. These pairs are: %s.
`, pairTurn, strings.Join(names, ", "))
}

// scalingTable writes how much faster several queues are than one: each queue has a thread on a processor of its own.
func scalingTable(b *strings.Builder, rows []bench.Row) {
	counts := queueCounts(runtime.NumCPU())
	b.WriteString("\nThe next table shows frames a second with several queues. Each queue has a thread and a processor of its own.\n\n| method of loam gen |")
	for _, n := range counts {
		fmt.Fprintf(b, " queues: %d |", n)
	}
	b.WriteString(" ratio to one queue |\n|---|" + strings.Repeat("--:|", len(counts)+1) + "\n")
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
- *In C* after the name of a method means a simple loop in C that makes the same system calls with the same options
  (` + "`test/genbench/testdata/loops.c`" + `).
- *xdp in C* does less work than a packet generator needs: it writes its descriptors only once, all for the same frame, so
  that only the work of Linux remains. Its speed is the upper bound for AF_XDP in copy mode.
- trafgen, testpmd (of DPDK) and hping3 are packet generators from Debian's packages. Each runs on one core. trafgen and testpmd's net_af_packet bypass
  the queueing discipline, as our ` + "`ring` and `packet`" + ` do.
- xdp and testpmd's net_af_xdp are in copy mode: a veth has no zero copy.
- For udpgso, Linux splits the large datagrams before they reach the interface (ethtool -K IF
  tx-udp-segmentation off), so that single frames are counted, as with hardware.
- mmsg sends runs of datagrams of the same size, which Linux splits (docs/decisions/0015);
  *mmsg, plain* and *mmsg in C* send one datagram in each message.
- *loam* is Loam's own stack. It has two threads for each queue, so one queue uses both processors of this machine.
- go-pktgen and wireblast are built from their sources, if LOAM_GEN_PEERS names them
  (` + "`test/genbench/others_test.go`" + `). They are not pinned to a processor, so Loam's threads are
  not pinned either when they are compared. go-pktgen's af_xdp sends on all queues, and is compared with the method xdp
  on the same number of queues.
- [pacing.md](pacing.md) shows the gaps between frames at low rates, measured by tcpdump.
- [full.md](full.md) shows a run of one minute at half of the highest rate, and 100 runs that were ended by a signal.
- If a method sends on several queues, it meets its aim if it sends more packets in a second of elapsed time than the other
  sender; its processor time does not count.
`

// release returns the version of the running kernel.
func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
