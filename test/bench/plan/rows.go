package plan

import (
	"fmt"
	"slices"

	"loam/test/bench/cell"
	"loam/test/bench/load"
	"loam/test/bench/subject"
)

// Better is the direction in which a figure is better.
type Better string

// Values of Better: whether a higher or a lower figure is better.
const (
	Higher Better = "higher"
	Lower  Better = "lower"
)

// Test is one measurement (a cell), which is run on each of Subjects. Spec lacks the subject and the span.
type Test struct {
	Name     string // selects tests on the command line: "pipe/pingpong"
	Group    string // heading under which its rows are printed
	Subjects []string
	Spec     cell.Spec
	Rows     []Row
}

// Row is one line of the results: one sample of a test.
type Row struct {
	Title  string
	Sample string
	Unit   string
	Better Better
	AtOnce int  // in the experiments of the GoNet paper: number of concurrent pings or clients
	Aim    *Aim // what Loam should reach; nil: nothing
	// Peer is the subject that Loam is compared with; "" means gVisor.
	Peer string `json:",omitempty"`
}

// Aim is a bound on Loam's figure. A field that is zero requires nothing.
type Aim struct {
	AtMost float64 // largest figure, in the row's unit
	Ratio  float64 // how many times as good as the peer Loam should be
}

// Headings of the tables in the report.
const (
	OverPipe = "Over a pipe"
	OverTap  = "Over a tap"
	OverVeth = "On an interface of Linux"
	Echo     = "Pings at once"
	Clients  = "Clients at once"
	Floods   = "Connections during a flood"
)

var (
	onPipe  = []string{subject.Loam, subject.GVisor, subject.Linux}
	onTap   = []string{subject.Loam, subject.GVisor, subject.GVisorVnet, subject.Linux}
	onVeth  = []string{subject.LoamPacket, subject.LoamRing, subject.LoamXDP, subject.Linux}
	onFlood = []string{subject.Loam, subject.LoamBound, subject.LoamSieve, subject.GVisor, subject.Linux}
	// The memory tests leave out Linux, because the memory of the kernel's stack is not in the heap of the process.
	ofMemory = []string{subject.Loam, subject.GVisor}
)

// Tests returns all measurements of the stack. conns is the number of connections that the memory tests
// open.
func Tests(conns int) []Test {
	return slices.Concat(pipe(conns), tap(conns), veth(), floods(), paper())
}

func pipe(conns int) []Test {
	return []Test{
		{"pipe/send", OverPipe, onPipe, cell.Spec{Place: cell.Pipe, Load: load.BulkSend}, []Row{
			{Title: "throughput, sent by the dialler", Sample: "Gb/s", Unit: "Gb/s", Better: Higher, Aim: equal},
			{Title: "allocations, sent by the dialler", Sample: "allocs/MB", Unit: "per MB", Better: Lower, Aim: equal},
		}},
		{"pipe/receive", OverPipe, onPipe, cell.Spec{Place: cell.Pipe, Load: load.BulkReceive}, []Row{
			{Title: "throughput, sent by the listener", Sample: "Gb/s", Unit: "Gb/s", Better: Higher, Aim: equal},
		}},
		{"pipe/send-1p", OverPipe, onPipe, cell.Spec{Place: cell.Pipe, Load: load.BulkSend, Procs: 1}, []Row{
			{Title: "throughput, sent by the dialler, on one CPU", Sample: "Gb/s", Unit: "Gb/s", Better: Higher, Aim: equal},
		}},
		{"pipe/send-gso", OverPipe, onPipe, cell.Spec{Place: cell.PipeGSO, Load: load.BulkSend}, []Row{
			{Title: "throughput, sent by the dialler, 64 kB frames", Sample: "Gb/s", Unit: "Gb/s", Better: Higher, Aim: equal},
		}},
		{"pipe/pingpong", OverPipe, onPipe, cell.Spec{Place: cell.Pipe, Load: load.PingPong}, []Row{
			{Title: "round trip of a byte, median", Sample: "p50", Unit: "µs", Better: Lower, Aim: &Aim{Ratio: 1, AtMost: 20}},
			{Title: "round trip of a byte, 99th percentile", Sample: "p99", Unit: "µs", Better: Lower, Aim: equal},
		}},
		{"pipe/pingpong-1p", OverPipe, onPipe, cell.Spec{Place: cell.Pipe, Load: load.PingPong, Procs: 1}, []Row{
			{Title: "round trip of a byte, median, on one CPU", Sample: "p50", Unit: "µs", Better: Lower, Aim: equal},
		}},
		{"pipe/connect", OverPipe, onPipe, cell.Spec{Place: cell.Pipe, Load: load.Connect}, []Row{
			{Title: "connections opened and closed", Sample: "conns/s", Unit: "per s", Better: Higher, Aim: equal},
		}},
		{"pipe/idle", OverPipe, ofMemory, cell.Spec{Place: cell.Pipe, Load: load.Idle, Conns: conns}, []Row{
			{Title: "memory of an idle connection", Sample: "bytes", Unit: "B", Better: Lower, Aim: &Aim{Ratio: 1, AtMost: 4096}},
		}},
	}
}

func tap(conns int) []Test {
	return []Test{
		{"tap/send", OverTap, onTap, cell.Spec{Place: cell.Tap, Load: load.BulkSend}, []Row{
			{Title: "throughput, stack to Linux", Sample: "Gb/s", Unit: "Gb/s", Better: Higher, Aim: &Aim{Ratio: 2}},
			{Title: "CPU time, stack to Linux", Sample: "CPU s/GB", Unit: "s/GB", Better: Lower, Aim: equal},
		}},
		{"tap/receive", OverTap, onTap, cell.Spec{Place: cell.Tap, Load: load.BulkReceive}, []Row{
			{Title: "throughput, Linux to stack", Sample: "Gb/s", Unit: "Gb/s", Better: Higher, Aim: &Aim{Ratio: 2}},
			{Title: "CPU time, Linux to stack", Sample: "CPU s/GB", Unit: "s/GB", Better: Lower, Aim: equal},
		}},
		{"tap/pingpong", OverTap, onTap, cell.Spec{Place: cell.Tap, Load: load.PingPong}, []Row{
			{Title: "round trip of a byte, median", Sample: "p50", Unit: "µs", Better: Lower, Aim: equal},
			{Title: "round trip of a byte, 99th percentile", Sample: "p99", Unit: "µs", Better: Lower, Aim: equal},
		}},
		{"tap/connect", OverTap, onTap, cell.Spec{Place: cell.Tap, Load: load.Connect}, []Row{
			{Title: "connections, stack dials", Sample: "conns/s", Unit: "per s", Better: Higher, Aim: equal},
		}},
		{"tap/accept", OverTap, onTap, cell.Spec{Place: cell.Tap, Load: load.Connect, Far: true}, []Row{
			{Title: "connections, stack accepts", Sample: "conns/s", Unit: "per s", Better: Higher, Aim: equal},
		}},
		{"tap/one-flight", OverTap, onTap, cell.Spec{Place: cell.Tap, Load: load.OneFlight, Far: true}, []Row{
			{Title: "Linux to stack, one segment in flight", Sample: "kB/s", Unit: "kB/s", Better: Higher, Aim: &Aim{Ratio: 0.5}, Peer: subject.Linux},
		}},
		{"tap/idle", OverTap, ofMemory, cell.Spec{Place: cell.Tap, Load: load.Idle, Conns: conns}, []Row{
			{Title: "memory of an idle connection", Sample: "bytes", Unit: "B", Better: Lower, Aim: &Aim{Ratio: 1, AtMost: 4096}},
		}},
	}
}

// veth returns the same loads for all ways in which Loam can use an interface of Linux.
func veth() []Test {
	return []Test{
		{"veth/send", OverVeth, onVeth, cell.Spec{Place: cell.Veth, Load: load.BulkSend}, []Row{
			{Title: "throughput, stack to Linux", Sample: "Gb/s", Unit: "Gb/s", Better: Higher},
			{Title: "CPU time, stack to Linux", Sample: "CPU s/GB", Unit: "s/GB", Better: Lower},
		}},
		{"veth/receive", OverVeth, onVeth, cell.Spec{Place: cell.Veth, Load: load.BulkReceive}, []Row{
			{Title: "throughput, Linux to stack", Sample: "Gb/s", Unit: "Gb/s", Better: Higher},
			{Title: "CPU time, Linux to stack", Sample: "CPU s/GB", Unit: "s/GB", Better: Lower},
		}},
		{"veth/pingpong", OverVeth, onVeth, cell.Spec{Place: cell.Veth, Load: load.PingPong}, []Row{
			{Title: "round trip of a byte, median", Sample: "p50", Unit: "µs", Better: Lower},
			{Title: "round trip of a byte, 99th percentile", Sample: "p99", Unit: "µs", Better: Lower},
		}},
	}
}

// floods returns the tests of how far floods of 100,000 packets per second reduce the rate of
// connections.
func floods() (tests []Test) {
	for _, kind := range load.FloodKinds {
		tests = append(tests, Test{"flood/" + kind, Floods, onFlood, cell.Spec{Place: cell.Tap, Load: load.Flood + kind, Far: true}, []Row{
			{Title: kind, Sample: "share", Unit: "%", Better: Higher, Aim: equal, Peer: subject.Linux},
		}})
	}
	return tests
}

// paper returns the two experiments of the GoNet paper (sections 3.3.1 and 3.3.2).
func paper() []Test {
	echo := Test{"paper/echo", Echo, onTap, cell.Spec{Place: cell.Tap, Load: load.Echo, Far: true}, nil}
	for _, n := range load.EchoCounts {
		echo.Rows = append(echo.Rows, Row{
			Title: plural(n, "ping"), Sample: fmt.Sprint(n), Unit: "µs", Better: Lower, AtOnce: n, Aim: equal,
		})
	}
	echo.Rows = append(echo.Rows, Row{Title: "pings without a reply", Sample: "lost", Unit: "%", Better: Lower})
	clients := Test{"paper/clients", Clients, onPipe, cell.Spec{Place: cell.Loop, Load: load.Clients}, nil}
	for _, n := range load.ClientCounts {
		clients.Rows = append(clients.Rows, Row{
			Title: plural(n, "client"), Sample: fmt.Sprint(n), Unit: "Mb/s", Better: Higher, AtOnce: n, Aim: equal,
		})
	}
	return []Test{echo, clients}
}

// equal requires Loam to be no worse than its peer.
var equal = &Aim{Ratio: 1}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
