package usernet

// slots is a semaphore that never blocks. Its holders have one element each in the channel. If the channel is full,
// take returns false and the caller refuses the request. The channel is never closed.
type slots chan struct{}

func newSlots(n int) slots { return make(slots, n) }

// take acquires a slot and reports whether one was free.
func (s slots) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// give releases a slot.
func (s slots) give() { <-s }
