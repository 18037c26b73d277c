package usernet

import "loam/stack"

// bell wakes the goroutine that reads a socket of the stack. It is a channel of capacity
// 1. A shard sends when the socket may be readable (stack.Events) and the goroutine
// receives; if the channel is full, the goroutine is about to look anyway. The channel is
// never closed: closing the socket rings too.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

// ring is the function for Watch. It must not block. Writable alone is ignored.
func (b bell) ring(e stack.Events) {
	if e&^stack.Writable == 0 {
		return
	}
	select {
	case b <- struct{}{}:
	default:
	}
}
