package thread

// Profile is a timer on the CPU time of one thread, for profiling. All times are CPU time of the thread, in
// nanoseconds. The zero value is no timer.
type Profile struct {
	Own      bool  // the thread has a timer of its own; otherwise, the process's timer applies to the thread
	next     int64 // CPU time at which the timer expires; 0: it is not armed
	interval int64 // interval after the first expiration; 0: the timer expires once
}

// Set starts the thread's own timer, or stops it if first is 0. used is the thread's CPU time now. The timer expires
// when the thread has used an additional CPU time (the parameter first), and then after every interval.
func (p *Profile) Set(used, first, interval int64) {
	p.next, p.interval = 0, interval
	if first > 0 {
		p.next = used + first
	}
}

// Next returns the CPU time at which p expires, or Never. process is the interval of setitimer(2), which applies to all
// threads without a timer of their own; 0 means that it is off. If it applies and p is not armed yet, Next returns 0, so
// that the kernel calls Due, which arms p.
func (p *Profile) Next(process int64) int64 {
	switch {
	case p.next != 0 && (p.Own || process != 0):
		return p.next
	case !p.Own && process != 0:
		return 0
	}
	return Never
}

// Due reports whether the timer has expired at the CPU time used, and arms it for the next interval. Missed intervals
// are skipped. The process's timer first expires on a thread one interval after the first call of Due.
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
