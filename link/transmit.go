package link

// Sender is the interface of Queue.Send alone.
type Sender interface {
	Send(fs []*Frame) (int, error)
}

// Transmit is the common first part of a device's Send. It frees and counts the frames that info
// does not carry. It passes the runs of frames between them to the Sender out, in as few calls
// as possible, and counts the frames that this Sender takes. n and err have the meaning of
// Queue.Send.
func Transmit(info *Info, c *Counters, out Sender, fs []*Frame) (n int, err error) {
	for n < len(fs) {
		run, bytes := gate(info, fs[n:])
		if len(run) > 0 {
			taken, err := out.Send(run)
			for _, f := range run[taken:] {
				bytes -= f.Len()
			}
			c.Sent(taken, bytes)
			n += taken
			if taken < len(run) || err != nil {
				return n, err
			}
		}
		if n < len(fs) {
			fs[n].Free()
			c.TxError()
			n++
		}
	}
	return n, nil
}

// gate returns the leading frames of fs that info carries, and their length in bytes. It sets
// ChecksumValid on frames with an unfinished checksum and clears it on all others: nothing can have
// damaged a checksum that was never computed, so the receiver may treat it as valid.
func gate(info *Info, fs []*Frame) (run []*Frame, bytes int) {
	for i, f := range fs {
		if !info.Carries(f) {
			return fs[:i], bytes
		}
		bytes += f.Len()
		f.ChecksumValid = f.NeedsChecksum
	}
	return fs, bytes
}
