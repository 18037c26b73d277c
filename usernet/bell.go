package usernet

import "loam/stack"

// bell wakes the goroutine that reads a socket of the gateway's stack. It is a channel of capacity 1. The stack sends
// when the socket may be readable (stack.Events); the goroutine receives. If the channel is full, the goroutine has not
// received an earlier notification yet, and will check the socket anyway. The channel is never closed: when the socket
// is closed, the stack sends too.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

// ring is the callback that is passed to the socket's Watch method. It must not block. It ignores an event that only
// reports that the socket is writable.
func (b bell) ring(e stack.Events) {
	if e&^stack.Writable == 0 {
		return
	}
	select {
	case b <- struct{}{}:
	default:
	}
}
