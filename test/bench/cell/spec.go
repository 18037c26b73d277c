// Package cell runs one load on one subject (a stack or a whole program), in a process and a network namespace of its
// own. Such a run is called a cell, as it fills a cell of the results.
//
// The subject runs in the process "near", which measures. On a pipe or a loopback, near contains both
// ends. On a tap, the other end is Linux: a second process, "far", runs the other half of the load on
// the kernel's stack. So the heap of another subject or an earlier run does not affect the measurement,
// and a stack that hangs or crashes costs one cell.
//
// The namespaces have no names. Each disappears with its processes, however they end, along with the
// tap or veth in it.
//
//	parent ── spawns, in a new namespace ──▶ near ── spawns ──▶ far
//	parent ◀──────── answer ──────────────── near ◀─ answer ─── far
//
// With a whole program (Machine, Gateway, Wire), near is the client. A machine is a child of near. A
// program that runs as a process is a child of a third process, "host", which plays the part of the
// loam command. host is in near's namespace or, if it is reached by a veth, in one of its own.
//
// A process ends when its standard input is closed, that is, when its parent ends.
//
// Reading order: spec.go, near.go, far.go, process.go, wire.go; program.go, host.go.
package cell

import (
	"time"

	"loam/test/bench/guest"
	"loam/test/bench/load"
)

// Place is the link over which a load runs.
type Place string

// Values of Place: the connection between the two ends of a measurement.
const (
	Pipe    Place = "pipe"     // two hosts in one process, joined by a pipe with MTU 1500
	PipeGSO Place = "pipe-gso" // two hosts in one process, joined by a pipe with segmentation offload
	Loop    Place = "loop"     // one host that connects to itself over its loopback
	Tap     Place = "tap"      // a host behind a tap, with the kernel at the other end; for Linux a veth
	Veth    Place = "veth"     // a host on one end of a veth pair, the kernel on the other

	// Where the whole program of package guest runs, the server of a measurement. Its client uses Linux's sockets.
	Machine Place = "machine" // the program runs in a virtual machine with a network card on a tap interface
	Gateway Place = "gateway" // the program runs as a process, and is reached by a port of the host; for Linux by the loopback interface
	Wire    Place = "wire"    // the program runs as a process on a tap interface; for Linux on a veth
)

// Spec describes one cell.
type Spec struct {
	Subject string
	Place   Place
	Load    string
	Conns   int  // load.Idle: number of connections
	Far     bool // on a tap: the client's half runs on the kernel, and the server's half on the subject
	Procs   int  // GOMAXPROCS of the process near; 0: not changed
	Span    time.Duration

	Model string       // Machine: a model of package guest
	CPUs  int          // Machine: number of CPUs
	Files *guest.Files // files of a program in a machine or process; plan.Run builds them
}

// answer is the report of a process to its parent, a line of JSON.
type answer struct {
	Samples load.Samples `json:",omitempty"`
	Error   string       `json:",omitempty"`
}
