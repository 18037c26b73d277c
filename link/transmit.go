package link

// Sender takes frames as Queue.Send does.
type Sender interface {
	Send(fs []*Frame) (int, error)
}

// Transmit is what a device's Send does in front of its own: it frees and counts
// the frames that info does not carry, passes those between them to out in as
// few calls as possible, and counts what out takes.
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

// gate returns the frames at the front of fs that info carries, and their bytes.
// A checksum that was left undone cannot have been damaged before: the receiver
// may take it as valid, and no other.
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
