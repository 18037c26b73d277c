package usernet

// slots is a semaphore that never blocks. Each holder has sent one element to the
// channel. If the channel is full, take fails and the caller refuses the request. The
// channel is never closed.
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
