package signal

// Queries for the lines about signals of /proc/PID/status.

// Waiting returns the signals that are pending for the thread itself, and for its process.
func (t *Thread) Waiting() (own, shared Set) {
	return t.pending.set.load(), t.process.pending.set.load()
}

// Dispositions returns the ignored signals and the signals with a handler.
func (p *Process) Dispositions() (ignored, caught Set) {
	for n := Number(1); n <= Last; n++ {
		switch p.actions[n].Handler {
		case Default:
		case Ignore:
			ignored |= SetOf(n)
		default:
			caught |= SetOf(n)
		}
	}
	return ignored, caught
}

// Queued returns the number of pending signals with infos.
func (p *Process) Queued() int {
	n := len(p.pending.infos)
	for _, t := range p.threads {
		n += len(t.pending.infos)
	}
	return n
}
