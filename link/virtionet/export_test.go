package virtionet

// Starve simulates a Recv that an interrupt has woken but whose goroutine does not run: the first receive queue has
// requested an interrupt, and nothing reads the queue.
func (d *Device) Starve() {
	r := &d.pairs[0].receiver
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armed = true
	r.queue.Arm(1)
}
