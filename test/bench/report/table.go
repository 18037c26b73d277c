package report

import (
	"bytes"
	"fmt"
	"strings"

	"loam/test/bench/guest"
	"loam/test/bench/plan"
)

// table returns the Markdown file. drawn are the plots to include.
func table(r *plan.Results, drawn []picture) []byte {
	var b bytes.Buffer
	head(&b, r)
	aims(&b, r)
	for _, group := range groups(r.Rows) {
		fmt.Fprintf(&b, "\n## %s\n\n", group[0].Group)
		if text := about[group[0].Group]; text != "" {
			fmt.Fprintf(&b, "%s\n\n", text)
		}
		groupTable(&b, group)
		for _, p := range drawn {
			if p.group == group[0].Group {
				fmt.Fprintf(&b, "\n![%s](%s)\n", p.title, p.file)
			}
		}
	}
	hops(&b, r, drawn)
	failures(&b, r)
	return b.Bytes()
}

// guestsHead writes the introduction of the report on whole programs.
func guestsHead(b *bytes.Buffer, r *plan.Results) {
	m := r.Machine
	fmt.Fprintf(b, `# A program on Loam and on Linux

Made by the benchmark in test/bench, with -guests; do not edit. %s, %d CPUs, Linux %s, %s, Loam %s,
%s. Medians of %d interleaved runs; requests are counted for %s in each; %s in all. The load average
of the machine was %s when it began: with much more than 0 the figures are rough, and CPU time
and the cost of a write say more than rates.

One program, test/bench/guest/program, a server of net/http that knows nothing of Loam, on both.
The last column says how many times as good Loam is as Linux: above 1 is better for Loam, whichever
way the unit points. It is the median over the pairs of runs, not the quotient of the medians.

In a virtual machine QEMU (-accel tcg, which emulates every instruction) gives both the same devices,
%d MiB, and a virtio card on a tap; the client is Linux, on the same two CPUs. Linux is Debian's
linux-image-cloud-amd64 as it is, with a first process of ours that loads the drivers, sets the
address and becomes the program; the rest of a distribution is not there. With what settings it
runs is written in test/bench/guest/machine.go. Both start by qboot, QEMU's small firmware, as
loam run does it. Each machine is booted twice and the second time
counts: after a pause the first boot takes up to 0.2 s longer, whatever is booted.
`, m.CPU, m.CPUs, m.Kernel, m.Go, m.Loam, m.Date, r.Reps, r.Span, r.Took, m.Load, guest.Memory>>20)
	if r.Cut {
		fmt.Fprint(b, cutText)
	}
}

const cutText = "\nThe limit of time left out some runs.\n"

func head(b *bytes.Buffer, r *plan.Results) {
	if r.Guests {
		guestsHead(b, r)
		return
	}
	m := r.Machine
	fmt.Fprintf(b, `# Loam beside gVisor and Linux

Made by the benchmark in test/bench; do not edit. %s, %d CPUs, Linux %s, %s, Loam %s,
gVisor %s, %s. Medians of %d interleaved runs of %s each; %s in all.

The last columns say how many times as good Loam is as gVisor: above 1 is better for Loam,
whichever way the unit points. Each is the median over the pairs of runs, not the quotient of
the medians. Linux is there for orientation: it is the kernel's own stack, over its loopback
in place of a pipe and over a veth in place of a tap. With which settings gVisor runs, and why,
is written in test/bench/subject/gvisor.go.
`, m.CPU, m.CPUs, m.Kernel, m.Go, m.Loam, m.GVisor, m.Date, r.Reps, r.Span, r.Took)
	if r.Cut {
		fmt.Fprint(b, cutText)
	}
}

// aims lists which aims are met.
func aims(b *bytes.Buffer, r *plan.Results) {
	kept := 0
	var broken []string
	for _, o := range r.Rows {
		switch met, known := o.Met(); {
		case !known:
		case met:
			kept++
		default:
			broken = append(broken, fmt.Sprintf("- %s: %s: %s", o.Group, o.Title, wanted(o)))
		}
	}
	if kept+len(broken) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%d of %d aims are kept.\n", kept, kept+len(broken))
	if len(broken) > 0 {
		fmt.Fprintf(b, "\nNot kept:\n\n%s\n", strings.Join(broken, "\n"))
	}
	if behind := behindVnet(r); len(behind) > 0 {
		fmt.Fprintf(b, "\nThe aims are about gVisor as it comes. On our tap link it is ahead of Loam here:\n\n%s\n", strings.Join(behind, "\n"))
	}
}

// behindVnet lists the rows in which gVisor on our tap link is better than Loam.
func behindVnet(r *plan.Results) []string {
	var out []string
	for _, o := range r.Rows {
		if o.RatioVnet != 0 && o.RatioVnet < 1 {
			out = append(out, fmt.Sprintf("- %s: %s: %s", o.Group, o.Title, times(o.RatioVnet)))
		}
	}
	return out
}

func wanted(o plan.Outcome) string {
	text := fmt.Sprintf("%s times %s, wanted %s", number(o.Ratio), title(o.Against()), number(o.Aim.Ratio))
	if loam, _ := o.Of(order[0]); o.Aim.AtMost != 0 {
		text += fmt.Sprintf("; %s %s, wanted at most %s", number(loam.Median), o.Unit, number(o.Aim.AtMost))
	}
	return text
}

// groups splits the rows into runs with the same heading.
func groups(rows []plan.Outcome) [][]plan.Outcome {
	var out [][]plan.Outcome
	for _, row := range rows {
		if last := len(out) - 1; last >= 0 && out[last][0].Group == row.Group {
			out[last] = append(out[last], row)
			continue
		}
		out = append(out, []plan.Outcome{row})
	}
	return out
}

// about is the text above the table of a group.
var about = map[string]string{
	plan.OverPipe: "Both ends are in one process. The pipe is each stack's own, with an MTU of 1500; where it says 64 kB, " +
		"it carries large frames and unfinished checksums as they are.",
	plan.OverTap: "The peer is the Linux kernel, in another process. gVisor's own link for a tap (fdbased) can use " +
		"neither segmentation offload nor batches there, so it runs a second time on a link that we wrote for it, " +
		"which does what a tap allows: there the stacks are compared, without the links.",
	plan.OverVeth: "The ways in which Loam can stand on an interface of Linux, here one end of a veth pair; the kernel has the " +
		"other end, in another process. Packet sockets and their rings carry frames of 64 kB with unfinished checksums; " +
		"AF_XDP carries neither here, and the kernel finishes checksums and cuts its segments to the MTU for it. " +
		"A ring that receives hands its frames over by the block, up to a millisecond late: see the ping-pong.",
	plan.Echo: "The first experiment of the paper (section 3.3.1): the kernel sends so many ICMP echo requests at " +
		"once over the tap. Mean time to the reply.",
	plan.Clients: "The second experiment of the paper (section 3.3.2): so many clients connect to one server over " +
		"the loopback of the stack at once, and each sends 4 kB. All bytes by all time, from before the server " +
		"starts until it has read the last byte.",
	plan.OnQ35: "One CPU. The program's memory is what of the machine's cannot be had any more when it idles " +
		"(MemAvailable of /proc/meminfo), the monitor's its resident set.",
	plan.OnMicroVM: "Loam only: emulated, this machine has none of the timers that Debian's kernel looks for, and it stops.",
	plan.ByGateway: "The network that needs no privilege. The gateway accepts a connection and hands it over to the program, so " +
		"in the column Loam the TCP is Linux's, as in the column Linux: compared are the two ways to it. Relayed (--relay), a " +
		"connection is one of the host's, to the gateway, and one of Loam's. The bare proxy is the least that such a gateway can be: a " +
		"process that takes connections and moves their bytes (io.Copy, which is splice(2) there) to the program on Linux.",
	plan.ByWire: "Loam's own stack on a tap, the client on the kernel's side of it; in its place a veth between two " +
		"namespaces for Linux.",
}

func groupTable(b *bytes.Buffer, rows []plan.Outcome) {
	var columns []string
	peer, vnet := "", false
	for _, name := range order {
		for _, o := range rows {
			if _, ok := o.Of(name); ok {
				columns = append(columns, name)
				break
			}
		}
	}
	for _, o := range rows {
		if o.Ratio != 0 {
			peer = title(o.Against())
		}
		vnet = vnet || o.RatioVnet != 0
	}
	header := []string{"", "unit"}
	for _, name := range columns {
		header = append(header, title(name))
	}
	if peer != "" {
		header = append(header, "Loam : "+peer)
	}
	if vnet {
		header = append(header, "Loam : gVisor, our tap link")
	}
	line(b, header)
	line(b, append([]string{":--", ":--"}, fill("--:", len(header)-2)...))
	for _, o := range rows {
		if !listed(o.AtOnce) {
			continue
		}
		cells := []string{o.Title, o.Unit}
		for _, name := range columns {
			cells = append(cells, figure(o, name))
		}
		if peer != "" {
			cells = append(cells, times(o.Ratio))
		}
		if vnet {
			cells = append(cells, times(o.RatioVnet))
		}
		line(b, cells)
	}
}

// listed reports whether a row of an experiment goes into the table. Powers of ten do; the plot shows
// the others. Rows outside the experiments always do.
func listed(atOnce int) bool {
	for atOnce >= 10 && atOnce%10 == 0 {
		atOnce /= 10
	}
	return atOnce <= 1
}

func figure(o plan.Outcome, name string) string {
	f, ok := o.Of(name)
	if !ok {
		return "–"
	}
	return number(f.Median)
}

func times(ratio float64) string {
	if ratio == 0 {
		return "–"
	}
	return number(ratio) + " ×"
}

func fill(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

func line(b *bytes.Buffer, cells []string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func hops(b *bytes.Buffer, r *plan.Results, drawn []picture) {
	if len(r.Hops) == 0 {
		return
	}
	fmt.Fprintf(b, `
## %s

What it costs to pass a packet through four layers that parse the headers of a TCP segment and
do nothing else. A packet a channel a layer, with a goroutine to each layer, is the shape of the
paper; a batch a channel is Loam's. At 10 Gb/s and 1500 bytes there are 1,200 ns for each packet.

`, hopsTitle)
	line(b, []string{"shape", "packets in a batch", "ns a packet"})
	line(b, []string{":--", "--:", "--:"})
	for _, h := range r.Hops {
		batch := "–"
		if h.Batch > 0 {
			batch = fmt.Sprint(h.Batch)
		}
		line(b, []string{h.Shape, batch, number(h.NS)})
	}
	for _, p := range drawn {
		if p.group == hopsTitle {
			fmt.Fprintf(b, "\n![%s](%s)\n", p.title, p.file)
		}
	}
}

const hopsTitle = "A packet a channel a layer, or a batch"

func failures(b *bytes.Buffer, r *plan.Results) {
	if len(r.Failures) == 0 {
		return
	}
	fmt.Fprint(b, "\n## Runs without a result\n\n")
	for _, f := range r.Failures {
		fmt.Fprintf(b, "- %s, %s, run %d: %s\n", f.Test, title(f.Subject), f.Rep+1, f.Error)
	}
}
