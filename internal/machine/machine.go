// Package machine finds out what this machine offers to Loam, for "loam doctor":
// a toolchain, platforms, links and privileges, and for each that is missing
// what to do about it.
//
// Whatever can be tried is tried (a device opened, a socket made, a namespace
// entered): rules that forbid things stand in too many places to be read. Where
// nothing can be tried the kernel's settings are read. Nothing is changed, and
// nothing leaves the machine.
//
// Read machine.go (what is found) and host.go (how the machine is asked); each
// other file holds the probes of one area.
package machine

// State says whether a thing can be used.
type State string

// States.
const (
	OK      State = "ok"
	Missing State = "missing"
)

// Finding is one thing that Loam can make use of.
type Finding struct {
	Area    string `json:"area"`             // "toolchain", "platform", "link", "network"
	Name    string `json:"name"`             // unique in its area
	State   State  `json:"state"`            // of the machine, whether Loam uses the thing or not
	Planned bool   `json:"planned"`          // no part of Loam uses it yet
	Detail  string `json:"detail"`           // what was seen
	Remedy  string `json:"remedy,omitempty"` // of what is missing: what to do, one sentence
}

// Probe asks h for everything, in the order in which people should read it.
func Probe(h *Host) []Finding {
	probes := []func(*Host) Finding{
		toolchain,
		process, virtualMachine, kvm,
		tap, packetSocket, xdpSocket,
		ping, lowPorts, userNamespaces,
	}
	var all []Finding
	for _, probe := range probes {
		all = append(all, probe(h))
	}
	return all
}
