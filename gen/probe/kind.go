package probe

import "fmt"

// Kind is the type of a probe.
type Kind uint8

// Kinds of probes.
const (
	Echo Kind = iota // ICMP or ICMPv6 echo request
	SYN              // TCP SYN to a port
	UDP              // a datagram to a port
	// Neighbour requests the Ethernet address of a target, by ARP or Neighbor Discovery. It reaches only hosts on the
	// same link.
	Neighbour
)

var kindNames = [...]string{Echo: "icmp", SYN: "tcp", UDP: "udp", Neighbour: "arp"}

// String returns the name used in commands.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// HasPorts reports whether probes of the kind go to ports.
func (k Kind) HasPorts() bool { return k == SYN || k == UDP }

// Answer is the kind of an answer from a target, or from a router on the path to the target.
type Answer uint8

// Kinds of answers. All except the last three settle a question: the question is not asked again, and further answers
// to it are not reported.
const (
	EchoReply Answer = iota
	SYNACK           // the port is open
	Reset            // the port is closed but the host is up
	Data             // a UDP datagram, from a service that is up
	Resolved         // the Ethernet address of a neighbour
	PortUnreachable
	Unreachable  // any other ICMP error "destination unreachable"; its code gives the reason
	TimeExceeded // the hop limit was exceeded on the path
	OtherError   // another ICMP error
	numAnswers   = iota
)

var answerNames = [...]string{
	EchoReply: "echo-reply", SYNACK: "syn-ack", Reset: "reset", Data: "data", Resolved: "neighbour", PortUnreachable: "port-unreachable",
	Unreachable: "unreachable", TimeExceeded: "time-exceeded", OtherError: "icmp-error",
}

// String returns the name used in results.
func (a Answer) String() string {
	if int(a) < len(answerNames) {
		return answerNames[a]
	}
	return fmt.Sprintf("answer %d", uint8(a))
}

// Settles reports whether the answer is final. An error from a router on the path is not final, because the target may
// answer another probe.
func (a Answer) Settles() bool { return a < Unreachable }

// Positive reports whether the answer shows that the host or the service is up.
func (a Answer) Positive() bool { return a == EchoReply || a == SYNACK || a == Data || a == Resolved }
