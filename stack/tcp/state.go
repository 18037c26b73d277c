package tcp

// State is a state of RFC 9293 section 3.3.2. LISTEN is not among them: a
// listener is the owner's, which calls Accept for each SYN that it takes.
type State uint8

// The states.
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

// String is the name that RFC 9293 uses.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown state"
}

// synchronized reports whether both sides know each other's first number.
func (s State) synchronized() bool { return s >= Established }

// receives reports whether the peer may still send data in this state.
func (s State) receives() bool {
	return s == Established || s == FinWait1 || s == FinWait2
}
