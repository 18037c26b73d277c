// Package cell runs one load on one subject, in a process and a network
// namespace of its own.
//
// The process that measures is "near": the subject lives there. On a pipe or a
// loopback it holds both ends. On a tap the other end is Linux: a second
// process, "far", runs the other half of the load on the kernel's stack. So
// neither the heap of another subject nor an earlier run has a part in what is
// measured, and a stack that hangs or crashes costs one cell.
//
// The namespaces have no names: each goes away with its processes, whatever
// becomes of them, and the tap or veth in it goes too.
//
//	parent ── spawns, in a new namespace ──▶ near ── spawns ──▶ far
//	parent ◀──────── answer ──────────────── near ◀─ answer ─── far
//
// With a whole program (Machine, Gateway, Wire) near is the client. A machine is its
// child; a process is that of a third process, "host", which is what the loam
// command is to its users, in near's namespace or, to be reached by a veth, in one of
// its own.
//
// A process ends when its standard input does, that is, when the process above
// it ends.
//
// Reading order: spec.go, near.go, far.go, process.go, wire.go; program.go, host.go.
package cell

import (
	"time"

	"loam/test/bench/guest"
	"loam/test/bench/load"
)

// Place is the link that a load works over.
type Place string

// Places.
const (
	Pipe    Place = "pipe"     // two hosts in one process, MTU 1500
	PipeGSO Place = "pipe-gso" // the same with segmentation offload
	Loop    Place = "loop"     // one host and its loopback
	Tap     Place = "tap"      // a host behind a tap, the kernel before it; for Linux a veth
	Veth    Place = "veth"     // a host on one end of a veth pair, the kernel on the other

	// The program of package guest; the client is Linux, in near.
	Machine Place = "machine" // in a virtual machine with a card on a tap
	Gateway Place = "gateway" // as a process, by a port of the host; for Linux the loopback
	Wire    Place = "wire"    // as a process on a tap; for Linux on a veth
)

// Spec says what one cell is to do.
type Spec struct {
	Subject string
	Place   Place
	Load    string
	Conns   int  // load.Idle: how many connections
	Far     bool // on a tap: the client's half runs on the kernel, the server's on the subject
	Procs   int  // GOMAXPROCS of near; 0 leaves it as it is
	Span    time.Duration

	Model string       // Machine: of package guest
	CPUs  int          // Machine: how many
	Files *guest.Files // of a program; plan.Run has them made
}

// answer is what a process tells the one above it, as a line of JSON.
type answer struct {
	Samples load.Samples `json:",omitempty"`
	Error   string       `json:",omitempty"`
}
