package probe

// plan selects the questions of a run, by position. It goes through the positions in ascending order, once in the first
// pass and once in each retry pass, and skips the answered ones. The order of the questions is random nevertheless,
// since a permutation maps positions to questions (space.go). plan has no clock and belongs to the scheduler.
type plan struct {
	size   uint64
	passes int // number of passes: retries plus one
	pass   int
	next   uint64 // next position in the current pass
	seen   *seen
}

// take stores positions in batch and returns their number. It is less than len(batch), possibly 0, only at the end of a
// pass.
func (p *plan) take(batch []uint64) int {
	n := 0
	for n < len(batch) && p.next < p.size {
		if p.next%64 == 0 && p.seen.full(p.next) {
			p.next += 64
			continue
		}
		if !p.seen.has(p.next) {
			batch[n] = p.next
			n++
		}
		p.next++
	}
	p.next = min(p.next, p.size)
	return n
}

// turn begins the next pass. It returns false if there is no further pass, or if every question has been answered.
func (p *plan) turn() bool {
	if p.pass+1 >= p.passes || p.seen.len() >= p.size {
		return false
	}
	p.pass++
	p.next = 0
	return true
}

// from sets the position at which an earlier run stopped.
func (p *plan) from(c *Checkpoint) {
	if c != nil {
		p.pass, p.next = c.Pass, min(c.Next, p.size)
	}
}
