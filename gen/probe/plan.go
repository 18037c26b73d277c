package probe

// plan says which position comes next. It goes through the positions in
// ascending order, which the permutation has shuffled, once and again for every
// retry, and passes over those that have answered. It is a machine without a
// clock: the scheduler owns it.
type plan struct {
	size   uint64
	passes int // retries and one
	pass   int
	next   uint64 // position in the pass
	seen   *seen
}

// take fills batch with positions and returns how many: fewer than there is room
// for, or none, at the end of a pass.
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

// turn begins the next pass and reports whether there is one, and whether anybody
// is left to be asked.
func (p *plan) turn() bool {
	if p.pass+1 >= p.passes || p.seen.len() >= p.size {
		return false
	}
	p.pass++
	p.next = 0
	return true
}

// from goes on where an earlier run stopped.
func (p *plan) from(c *Checkpoint) {
	if c != nil {
		p.pass, p.next = c.Pass, min(c.Next, p.size)
	}
}
