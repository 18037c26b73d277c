package stack

import "sync/atomic"

// Events is a set of socket conditions: the conditions of poll(2), Urgent and Drained.
type Events uint32

// Socket conditions. ReadHangup and Hangup are permanent once they hold.
const (
	Readable   Events = 1 << iota // a read would not block (data, end of file or an error)
	Writable                      // a write would not block (room, or an error)
	ReadHangup                    // the peer will send no more data
	Hangup                        // both directions of the connection have ended
	Error                         // an error is pending, which Err returns
	Urgent                        // an urgent byte is available: see TCPConn.TryReadUrgent
	Drained                       // all written data was acknowledged: see TCPConn.Drained
)

// watcher holds the function to call when an event begins. The zero value has none.
type watcher struct {
	f atomic.Pointer[func(Events)]
}

// Watch registers f to be called whenever an event begins, replacing the previous function; nil removes it. f runs on the
// goroutine that caused the event, normally while a shard processes packets, so it must not block. Of the socket's methods f
// may call only TCPConn.Buffered and, for Readable alone, TCPConn.TryRead. An event may already be over when f is called.
func (w *watcher) Watch(f func(Events)) {
	if f == nil {
		w.f.Store(nil)
		return
	}
	w.f.Store(&f)
}

// reportEvents reports events to the function that Watch has registered.
func (w *watcher) reportEvents(e Events) {
	if f := w.f.Load(); f != nil {
		(*f)(e)
	}
}
