package thread

// Profile is the timer by which a thread is asked, in equal pieces of the time
// that it runs, where it is. All times are of the thread's own running, in
// nanoseconds. The zero value is no timer.
type Profile struct {
	Own      bool  // the thread has a timer of its own; else that of the process counts
	next     int64 // when it goes off; 0: it rests
	interval int64 // and from then on; 0: once
}

// Set starts a timer of the thread's own, which goes off after first, or stops it
// if that is 0.
func (p *Profile) Set(used, first, interval int64) {
	p.next, p.interval = 0, interval
	if first > 0 {
		p.next = used + first
	}
}

// Next is when the timer goes off, if that of the process has an interval (0: it
// rests); or Never.
func (p *Profile) Next(process int64) int64 {
	switch {
	case p.next != 0 && (p.Own || process != 0):
		return p.next
	case !p.Own && process != 0:
		return 0
	}
	return Never
}

// Due reports whether the timer goes off, and sets it anew. Times that were
// missed are not made up for. A timer of the process's goes off for the first time
// an interval after it has been noticed.
func (p *Profile) Due(used, process int64) bool {
	if !p.Own {
		if process == 0 {
			p.next = 0
			return false
		}
		if p.next == 0 || p.next > used+process {
			p.next = used + process
			return false
		}
		p.interval = process
	}
	if p.next == 0 || used < p.next {
		return false
	}
	if p.interval == 0 {
		p.next = 0
		return true
	}
	p.next += (used - p.next + p.interval) / p.interval * p.interval
	return true
}
