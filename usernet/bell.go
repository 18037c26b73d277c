package usernet

import "loam/stack"

// bell wakes the goroutine that reads a socket of the stack. It has one place:
// a shard sends when there may be something to read (stack.Events), the
// goroutine receives; full means that it is going to look anyway. It is never
// closed: that the socket has been is something to read, too.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

// ring is for Watch: it must not block.
func (b bell) ring(e stack.Events) {
	if e&^stack.Writable == 0 {
		return
	}
	select {
	case b <- struct{}{}:
	default:
	}
}
