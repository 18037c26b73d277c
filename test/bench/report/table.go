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

The benchmark in test/bench makes this file with -guests; do not edit it. Machine: %s, %d CPUs, Linux %s. Versions:
%s, Loam %s. Date: %s. Figures are medians of %d interleaved runs. Requests are counted for %s in each
run; all runs took %s. The load average of the machine was %s at the start. If it is much larger than 0, the
figures are rough; CPU time and the cost of a write are then more reliable than rates.

Both systems run the same program, test/bench/guest/program: an ordinary net/http server.
The last column compares Loam with Linux. A ratio above 1 means that Loam is better, for every unit: Loam's rate is
higher, or its time or memory is lower. The ratio is the median over the pairs of runs, not the quotient of the medians.

QEMU (-accel tcg, which emulates every instruction) gives both systems the same virtual machine: the same devices, %d
MiB of memory, and a virtio network card on a TAP device. The client runs on Linux, on the same two CPUs. The Linux
guest is Debian's unmodified linux-image-cloud-amd64. Its first process is ours: it loads the drivers, sets the address
and executes the program; no other part of a distribution runs. test/bench/guest/machine.go has the settings. Both
systems start with qboot, QEMU's small firmware, as loam run does. Each machine is booted twice, and the second boot
is measured, because after a pause the first boot of any system takes up to 0.2 s longer.
`, m.CPU, m.CPUs, m.Kernel, m.Go, m.Loam, m.Date, r.Reps, r.Span, r.Took, m.Load, guest.Memory>>20)
	if r.Cut {
		fmt.Fprint(b, cutText)
	}
}

const cutText = "\nSome runs were omitted because of the time limit.\n"

func head(b *bytes.Buffer, r *plan.Results) {
	if r.Guests {
		guestsHead(b, r)
		return
	}
	m := r.Machine
	fmt.Fprintf(b, `# Loam compared with gVisor and Linux

The benchmark in test/bench makes this file; do not edit it. Machine: %s, %d CPUs, Linux %s. Versions: %s,
Loam %s, gVisor %s. Date: %s. Figures are medians of %d interleaved runs of %s
each; all runs took %s.

The last columns compare Loam with gVisor. A ratio above 1 means that Loam is better, for every unit: Loam's rate is
higher, or its time or memory is lower. Each ratio is the median over the pairs of runs, not the quotient of the
medians. For comparison, the column Linux has Linux's own stack: over its loopback instead of a pipe, and over a veth
pair instead of a TAP device. test/bench/subject/gvisor.go has gVisor's settings and the reasons for them.

The rows with the throughput measure one TCP connection that sends as fast as it can. The dialler is the end that opened the
connection, and the listener is the other end. "64 kB frames" are larger than the MTU, as segmentation offload produces them.
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
	fmt.Fprintf(b, "\n%d of %d aims are met.\n", kept, kept+len(broken))
	if len(broken) > 0 {
		fmt.Fprintf(b, "\nNot met:\n\n%s\n", strings.Join(broken, "\n"))
	}
	if behind := behindVnet(r); len(behind) > 0 {
		fmt.Fprintf(b, "\nThe aims are about gVisor with its own links. With Loam's TAP link, gVisor is better than Loam in these rows:\n\n%s\n", strings.Join(behind, "\n"))
	}
}

// behindVnet lists the rows in which gVisor with Loam's TAP link is better than Loam.
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
	text := fmt.Sprintf("Loam is %s times as good as %s; the aim is %s times", number(o.Ratio), title(o.Against()), number(o.Aim.Ratio))
	if loam, _ := o.Of(order[0]); o.Aim.AtMost != 0 {
		text += fmt.Sprintf("; %s %s, wanted at most %s", number(loam.Median), o.Unit, number(o.Aim.AtMost))
	}
	return text
}

// groups splits the rows into sequences with the same heading.
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
	plan.OverPipe: "Both ends are in one process. A pipe is a network device in memory. Each stack uses its own pipe device " +
		"with an MTU of 1500. In rows with 64 kB, the pipe passes large frames with partial checksums unchanged.",
	plan.OverTap: "The peer is Linux's TCP, in another process. On a TAP device, gVisor's own link (fdbased) uses " +
		"neither segmentation offload nor batches. Therefore gVisor is also measured with a link that uses " +
		"both, like Loam's. That column compares the stacks without the difference of the links.",
	plan.OverVeth: "Loam can use an interface of Linux by three methods. Here the interface is one end of a veth pair. " +
		"The peer is Linux's TCP on the other end, in another process. Packet sockets and their rings carry frames of " +
		"64 kB with partial checksums. AF_XDP carries neither on a veth: Linux first completes checksums and splits " +
		"frames into frames of the MTU's size. A receive ring delivers frames in blocks, up to a millisecond late, " +
		"which shows in the round trips.",
	plan.Floods: "A row names the kind of the packets of a flood of 100,000 packets per second over a TAP device. The figures are " +
		"the rate at which connections are opened and closed during the flood, in percent of the rate without it. In the " +
		"column \"Loam, flood dropped when read\", Loam frees the packets of the flood as soon as it has read them from the device.",
	plan.Echo: "This is the first experiment of the paper that the README names (section 3.3.1): Linux sends the given number of ICMP echo " +
		"requests at once over the TAP device. Figures are the mean time to the reply.",
	plan.Clients: "This is the second experiment of the paper that the README names (section 3.3.2): the given number of clients connect at once to a " +
		"server over the stack's loopback, and each sends 4 kB. The rate is the number of all bytes divided " +
		"by the time from before the server starts until it has read the last byte.",
	plan.OnQ35: "The machine has one CPU. The memory in use is the size of the machine's memory minus MemAvailable of " +
		"/proc/meminfo, while the program idles.",
	plan.OnMicroVM: "Only Loam is measured: without KVM, this machine type has no timer that Debian's kernel supports, so " +
		"that kernel does not start.",
	plan.ByGateway: "The program uses the network that needs no privilege: the gateway, a part of the loam command. The gateway accepts a " +
		"connection and passes its socket to the program, so Loam and Linux both use Linux's TCP here. With --relay " +
		"(column \"Loam, relayed\"), the gateway passes the " +
		"bytes between a connection of the host and a connection of Loam. The bare proxy is a minimal gateway " +
		"for comparison: a process that accepts connections and copies their bytes (io.Copy, which uses " +
		"splice(2)) to the program on Linux.",
	plan.ByWire: "The program uses Loam's own stack on a TAP device, and the client uses Linux's TCP on the other side. " +
		"For Linux, a veth pair between two network namespaces takes the place of the TAP device.",
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
	header := []string{"measurement", "unit"}
	for _, name := range columns {
		header = append(header, title(name))
	}
	if peer != "" {
		header = append(header, "Loam is better than "+peer+" by a factor of")
	}
	if vnet {
		header = append(header, "Loam is better than gVisor, with Loam's TAP link, by a factor of")
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

// listed reports whether a row of an experiment goes into the table. Rows of the GoNet paper's experiments do if their
// number of pings or clients is a power of ten; the plot shows the other rows. All other rows do.
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

The table shows the time to pass a packet through four layers that only parse the headers of a TCP segment. In the design of the
paper that the README names, each layer is a goroutine, and each packet is sent through a channel between layers. In Loam's design, a channel
carries a batch of packets. At 10 Gb/s and 1500 bytes, a stack has 1,200 ns for each packet.

`, hopsTitle)
	line(b, []string{"design", "packets in a batch", "ns for each packet"})
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

const hopsTitle = "Packets or batches in channels"

func failures(b *bytes.Buffer, r *plan.Results) {
	if len(r.Failures) == 0 {
		return
	}
	fmt.Fprint(b, "\n## Runs without a result\n\n")
	for _, f := range r.Failures {
		fmt.Fprintf(b, "- %s, %s, run %d: %s\n", f.Test, title(f.Subject), f.Rep+1, f.Error)
	}
}
