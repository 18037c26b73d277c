package ring

import "loam/link"

// The two ends of a ring as a device sees them: with the gate of link.Info in
// front and with counters.

// Transmit is the Send of a queue whose frames go into the ring. Frames that
// info does not carry are freed and counted.
func (r *Ring) Transmit(info *link.Info, c *link.Counters, fs []*link.Frame) (n int, err error) {
	for n < len(fs) {
		run, bytes := gate(info, fs[n:])
		if len(run) > 0 {
			taken, err := r.Send(run)
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

// gate returns the frames at the front of fs that info carries, and their bytes.
// A checksum that was left undone cannot have been damaged on the way: the
// receiver may take it as valid, and no other.
func gate(info *link.Info, fs []*link.Frame) (run []*link.Frame, bytes int) {
	for i, f := range fs {
		if !info.Carries(f) {
			return fs[:i], bytes
		}
		bytes += f.Len()
		f.ChecksumValid = f.NeedsChecksum
	}
	return fs, bytes
}

// Receive is the Recv of a queue whose frames come out of the ring.
func (r *Ring) Receive(c *link.Counters, fs []*link.Frame) (int, error) {
	n, err := r.Recv(fs)
	bytes := 0
	for _, f := range fs[:n] {
		bytes += f.Len()
	}
	c.Received(n, bytes)
	return n, err
}
