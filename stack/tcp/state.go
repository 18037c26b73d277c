package tcp

// State is a connection state of RFC 9293 section 3.3.2. LISTEN is missing: listeners belong to the owner,
// which calls Accept for each SYN it accepts.
type State uint8

// Values of State.
const (
	Closed State = iota
	SynSent
	SynReceived
	Established
	FinWait1
	FinWait2
	CloseWait
	Closing
	LastAck
	TimeWait
)

var stateNames = [...]string{
	Closed:      "CLOSED",
	SynSent:     "SYN-SENT",
	SynReceived: "SYN-RECEIVED",
	Established: "ESTABLISHED",
	FinWait1:    "FIN-WAIT-1",
	FinWait2:    "FIN-WAIT-2",
	CloseWait:   "CLOSE-WAIT",
	Closing:     "CLOSING",
	LastAck:     "LAST-ACK",
	TimeWait:    "TIME-WAIT",
}

// String returns the name that RFC 9293 uses.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown state"
}

// synchronized reports whether both sides know each other's initial sequence number.
func (s State) synchronized() bool { return s >= Established }

// receives reports whether the peer may still send data in this state.
func (s State) receives() bool {
	return s == Established || s == FinWait1 || s == FinWait2
}
