//go:build linux

package probebench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"loam/internal/chart"
)

const docs = "../../docs/probe"

// write writes docs/probe.
func write(t *testing.T, scenes []scene, prefix netip.Prefix) {
	t.Helper()
	if err := os.MkdirAll(docs, 0o777); err != nil {
		t.Fatal(err)
	}
	figures, err := json.MarshalIndent(struct {
		Targets string  `json:"targets"`
		Scenes  []scene `json:"scenes"`
	}{prefix.String(), scenes}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"found.svg": bars(t, scenes[0].Rows), "results.json": append(figures, '\n'), "README.md": []byte(page(scenes, prefix)),
	} {
		if err := os.WriteFile(filepath.Join(docs, name), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// page returns the document.
func page(scenes []scene, prefix netip.Prefix) string {
	var b strings.Builder
	all := uint64(1) << (32 - prefix.Bits())
	fmt.Fprintf(&b, `# Probing, measured

This page is made by %s. Each program probed all %d addresses of %v, or a part of them, by ICMP echo as fast as it could.
The programs took turns, %d times, on a machine of %d processors that other programs used at the same time
(Linux %s). Linux answers for the addresses in another network namespace
(ip route add local PREFIX dev lo), at the other end of a veth pair with two queues. Figures are medians over the turns.

The interface at the far end counts the *probes sent*. The *addresses found* are the addresses in the program's file of
results. Rates refer to the time from the first probe to the last. The *processor time* is the time of the program and of
Linux's softirq threads. On a veth this includes most of the work of answering. Other programs on the machine affect figures
per second of processor time less than the rates. The row *bound* is the highest rate that this machine allows for any program;
it is explained below the tables.

![bars of the first table](found.svg)
`, "`make probebench`", all, prefix, len(scenes[0].Rows[0].Runs), runtime.NumCPU(), release())
	for i := range scenes {
		sceneTable(&b, &scenes[i])
	}
	b.WriteString(notes)
	return b.String()
}

// sceneTable writes the tables of a scene.
func sceneTable(b *strings.Builder, s *scene) {
	answering := s.Asked >> s.bits
	fmt.Fprintf(b, "\n## %s\n\n", strings.ToUpper(s.Name[:1])+s.Name[1:])
	if s.busy > 0 {
		fmt.Fprintf(b, "%d programs that only compute ran at the same time, and %d addresses were probed.\n\n", s.busy*runtime.NumCPU(), s.Asked)
	}
	b.WriteString("| program | probes sent a second | addresses found, of those that answer | addresses found a second | addresses found per second of processor time |\n|---|--:|--:|--:|--:|\n")
	for _, r := range append(slices.Clone(s.Rows), s.Bound) {
		fmt.Fprintf(b, "| %s | %.0f | %.4f %% | %.0f | %.0f |\n", r.Name, r.median(run.SentRate),
			100*r.median(func(one run) float64 { return float64(one.Found) })/float64(answering), r.median(run.Rate), r.median(run.PerCPU))
	}
	fmt.Fprintf(b, "\n| program with which loam is compared | probes sent a second, loam / program | addresses found a second, loam / program | addresses found per second of processor time, loam / program | addresses found a second, bound / program | aim: %d times as many addresses found a second |\n|---|--:|--:|--:|--:|---|\n", wanted)
	for _, o := range s.Ratios {
		verdict := o.verdict()
		if !o.Met {
			verdict = "**missed**" + strings.TrimPrefix(verdict, "missed")
		}
		fmt.Fprintf(b, "| %s | %.2f | %.2f | %.2f | %.2f | %s |\n", o.Than, o.Sent, o.Found, o.PerCPU, o.Bound, verdict)
	}
	ours := &s.Rows[0]
	fmt.Fprintf(b, "\nloam finds %.2f times as many addresses a second as the bound, and %.2f times as many per processor second.\n",
		ours.median(run.Rate)/s.Bound.median(run.Rate), ours.median(run.PerCPU)/s.Bound.median(run.PerCPU))
}

const notes = `
- Everything runs on one machine: the processors that send the probes also answer them. The row *bound* shows the rate
  that this work alone allows: the cheapest known method sends the same echo request to all addresses, and the answers
  are dropped on arrival (` + "`test/probebench/bound_test.go`" + `). A program that finds addresses has to do
  more work. So an aim that is above the ratio of the bound to a program cannot be reached on this machine ("out of reach
  here").
- zmap (2.1.1) and masscan (1.3.2) are Debian's packages. Like loam, they send as fast as they can, and wait a second
  for the last answers. They send each probe once. In the tables in which all addresses answer, loam repeats probes
  without an answer, and so finds all addresses.
- If the receive buffer of a program is too small, answers are lost while the program waits for a processor. This
  happens to masscan on a busy machine. loam limits the outstanding probes to the room for answers in its buffer.
`

// release returns the version of the kernel.
func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// bars draws the rates of probes sent and addresses found.
func bars(t *testing.T, rows []row) []byte {
	t.Helper()
	p := chart.New()
	p.Title.Text = "probes sent and addresses found a second"
	p.X.Label.Text, p.X.Min = "thousand a second", 0
	var names []string
	sent, found := plotter.Values{}, plotter.Values{}
	for i := len(rows) - 1; i >= 0; i-- {
		names = append(names, rows[i].Name)
		sent = append(sent, rows[i].median(run.SentRate)/1e3)
		found = append(found, rows[i].median(run.Rate)/1e3)
	}
	const width = 14 // points
	for i, one := range []struct {
		title  string
		values plotter.Values
	}{{"sent", sent}, {"found", found}} {
		bar, err := plotter.NewBarChart(one.values, vg.Points(width))
		if err != nil {
			t.Fatal(err)
		}
		bar.Horizontal, bar.Color, bar.LineStyle.Width = true, plotutil.Color(i+2), 0
		bar.Offset = vg.Points(width/2 - float64(i)*width)
		p.Add(bar)
		chart.Entry(p, one.title, bar)
	}
	chart.Names(p, names...)
	p.X.Max = 1.05 * slices.Max(sent) // the legend is at the end of the shortest bar, the last
	var b bytes.Buffer
	if err := chart.Write(&b, p, vg.Points(640), vg.Points(float64(90+40*len(rows)))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
