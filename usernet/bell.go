package usernet

import "loam/stack"

// bell wakes the goroutine that reads a socket of the stack. It is a channel of capacity 1. A shard sends when the
// socket may be readable (stack.Events), and the goroutine receives. If the channel is full, the goroutine has not
// received an earlier notification yet, and will check the socket anyway. The channel is never closed: closing the
// socket also sends.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

// ring is the callback for Watch. It must not block. It ignores an event that only reports that the socket is writable.
func (b bell) ring(e stack.Events) {
	if e&^stack.Writable == 0 {
		return
	}
	select {
	case b <- struct{}{}:
	default:
	}
}
