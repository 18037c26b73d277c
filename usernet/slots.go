package usernet

// slots bounds how many of something there are at once: a channel that each of
// them has sent to. When it is full there is no room for another, and whoever
// wanted it is refused; nobody waits for a slot. It is never closed.
type slots chan struct{}

func newSlots(n int) slots { return make(slots, n) }

// take takes a slot if one is free.
func (s slots) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// give gives a slot back.
func (s slots) give() { <-s }
