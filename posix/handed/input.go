package handed

import "sync/atomic"

// Whether a connection of the host (tcp.go) has data to read is mostly known without a system call.
// A short read has taken all available data, and the runtime's poller is notified when more arrives.
// Without this knowledge, an HTTP server makes two useless calls per request: one to learn whether the
// client has closed the connection, and one for the next request.
//
// The poller counts its notifications, and a reader remembers the count from before its read. While the
// count is the same, nothing has arrived according to the poller. The read then returns EAGAIN, the
// reader waits in the poller, and any notification since wakes it.
//
// A short read can also precede the end of the stream or urgent data, and no further notification
// follows. Once either may have arrived, every read goes to the host.

// Arrivals holds the notifications that the runtime's poller received about a connection of the host.
// The poller writes it with operations of sync/atomic. It adds 2 to the word for every notification of
// possible input. It sets bit 0, permanently, on the end of the stream, an error or urgent data.
type Arrivals struct {
	Word atomic.Uint32
}

// Ended is the bit of Arrivals for conditions that a short read does not reveal.
const Ended = 1

// hostInput records whether a connection may have data to read.
type hostInput struct {
	arrivals atomic.Pointer[Arrivals] // notifications of the poller; nil: the poller does not watch the connection
	drained  atomic.Uint32            // value of arrivals, with bit 0 set, at the last read that found no more data; 0: there may be data
}

// watch sets the counter in which the poller records notifications of the connection; nil means that the poller does not
// watch it.
func (in *hostInput) watch(a *Arrivals) {
	in.drained.Store(0)
	in.arrivals.Store(a)
}

// look returns the value of the counter before a read, and whether the connection has no data to read.
func (in *hostInput) look() (word uint32, empty bool) {
	a := in.arrivals.Load()
	if a == nil {
		return Ended, false
	}
	word = a.Word.Load()
	return word, word&Ended == 0 && in.drained.Load() == word|1
}

// took records the result of the read that followed a call of look. word is the result of
// look. wanted is the size of the buffer. came is the number of bytes that were read, or
// 0 for EAGAIN.
func (in *hostInput) took(word uint32, wanted, came int) {
	if word&Ended == 0 && came < wanted {
		in.drained.Store(word | 1)
	}
}

// end records that later reads must ask the host.
func (in *hostInput) end() {
	if a := in.arrivals.Load(); a != nil {
		a.Word.Or(Ended)
	}
}
