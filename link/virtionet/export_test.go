package virtionet

// Starve puts the first receive queue into the state of a Recv whose goroutine was woken by an interrupt and does not run:
// it has requested an interrupt, and does not look.
func (d *Device) Starve() {
	r := &d.pairs[0].receiver
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armed = true
	r.queue.Arm(1)
}
