// Package machine finds out what this machine offers to Loam, for "loam doctor": a toolchain,
// platforms, links and privileges. For each that is missing, it says what to do.
//
// If something can be tried, it is tried: a device is opened, a socket is created, a namespace is
// entered. Rules that forbid these are in too many places to be read. Otherwise the kernel's settings
// are read. The probes change nothing and send nothing over the network.
//
// Read machine.go (the findings) and host.go (access to the machine); each other file holds the probes
// of one area.
package machine

// State is whether a thing can be used.
type State string

// The states.
const (
	OK      State = "ok"
	Missing State = "missing"
)

// Finding is the result of one probe: one thing that Loam can use.
type Finding struct {
	Area    string `json:"area"`             // "toolchain", "platform", "seal", "link", "network"
	Name    string `json:"name"`             // unique in its area
	State   State  `json:"state"`            // what the machine offers, regardless of whether Loam uses the thing
	Planned bool   `json:"planned"`          // Loam does not use it yet
	Detail  string `json:"detail"`           // what the probe found
	Remedy  string `json:"remedy,omitempty"` // if missing: what to do, one sentence
}

// Probe runs all probes and returns their findings in the order in which to print them.
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
	return append(all, seal(h)...)
}
