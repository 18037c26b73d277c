package stack

import "sync/atomic"

// Events is a set of conditions of a socket: the ones that poll(2) knows, and
// Drained.
type Events uint32

// Conditions. All but the first two stay once they have come.
const (
	Readable   Events = 1 << iota // a read would not block (data, end of file or an error)
	Writable                      // a write would not block (room, or an error)
	ReadHangup                    // the peer will send no more
	Hangup                        // both directions have ended
	Error                         // an error is waiting: Err returns it
	Urgent                        // there is an urgent byte: see TCPConn.TryReadUrgent
	Drained                       // nothing that was written waits to be acknowledged: see TCPConn.Drained
)

// watcher holds the function that learns when events begin. The zero value has
// none.
type watcher struct {
	f atomic.Pointer[func(Events)]
}

// Watch has f called whenever one of the events begins; nil ends it. f is
// called by the goroutine that caused the event, in a shard's turn as a rule, so it
// must not block, and of the socket call nothing but TCPConn.Buffered and, for Readable
// alone, TCPConn.TryRead. An event may be reported although it has passed already.
func (w *watcher) Watch(f func(Events)) {
	if f == nil {
		w.f.Store(nil)
		return
	}
	w.f.Store(&f)
}

func (w *watcher) tell(e Events) {
	if f := w.f.Load(); f != nil {
		(*f)(e)
	}
}
