package probe

import "fmt"

// Kind is what a probe asks.
type Kind uint8

// Kinds.
const (
	Echo Kind = iota // ICMP or ICMPv6 echo request
	SYN              // TCP SYN to a port
	UDP              // a datagram to a port
)

var kindNames = [...]string{Echo: "icmp", SYN: "tcp", UDP: "udp"}

// String is the name that users type.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Answer is what came back from a target, or from a router on the way to it.
type Answer uint8

// Answers. All but the last three settle the question: the target is not asked
// again, and says no more in the results.
const (
	EchoReply Answer = iota
	SYNACK           // the port is open
	Reset            // the port is closed, the host is there
	Data             // a datagram came back
	PortUnreachable
	Unreachable  // another ICMP "destination unreachable"; the code says which
	TimeExceeded // the hop limit ran out on the way
	OtherError   // another ICMP error
)

var answerNames = [...]string{
	EchoReply: "echo-reply", SYNACK: "syn-ack", Reset: "reset", Data: "data", PortUnreachable: "port-unreachable",
	Unreachable: "unreachable", TimeExceeded: "time-exceeded", OtherError: "icmp-error",
}

// String is how results name the answer.
func (a Answer) String() string {
	if int(a) < len(answerNames) {
		return answerNames[a]
	}
	return fmt.Sprintf("answer %d", uint8(a))
}

// Settles reports whether the target has said all that it will: an error from
// the network on the way may be over when it is asked again.
func (a Answer) Settles() bool { return a < Unreachable }

// Positive reports whether the answer is what one hopes for: the host, or the
// service, is there.
func (a Answer) Positive() bool { return a == EchoReply || a == SYNACK || a == Data }
