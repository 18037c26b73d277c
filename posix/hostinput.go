package posix

import "sync/atomic"

// Whether a connection of the host's (hosttcp.go) has something to read is mostly known
// without asking: a read that came up short has taken all that there was, and the runtime's poller is
// told when more comes. A server asks without need twice for each request of HTTP: once
// for whether the client has gone, and once for the next request.
//
// The poller counts what it is told, and who reads remembers the count from before the
// call. While it is the same, nothing has come that the poller knows of; whoever reads is told
// that he has to wait, waits in the poller, and is woken by what has come since.
//
// A read can come up short before the end of the stream, or before urgent data, without
// being told of it again: once either may have come, each read is the host's business.

// Arrivals is what the runtime's poller has been told about a connection of the host's. It writes, by
// operations of sync/atomic: the word grows by two with everything that may be something to read, and
// becomes odd, for good, with the end of what is received, an error, or urgent data.
type Arrivals struct {
	word atomic.Uint32
}

// ended is the bit of Arrivals for what a short read does not tell apart.
const ended = 1

// hostInput is what is known about what a connection has to read.
type hostInput struct {
	arrivals atomic.Pointer[Arrivals] // nil: the poller does not watch
	drained  atomic.Uint32            // the word when all had been read, with bit 0 set; 0: that is not known
}

// watch has the input known by a from now on; nil: by nothing.
func (in *hostInput) watch(a *Arrivals) {
	in.drained.Store(0)
	in.arrivals.Store(a)
}

// look returns the word for a read that is about to be made, and whether it would find
// nothing.
func (in *hostInput) look() (word uint32, empty bool) {
	a := in.arrivals.Load()
	if a == nil {
		return ended, false
	}
	word = a.word.Load()
	return word, word&ended == 0 && in.drained.Load() == word|1
}

// took is told of a read that was made after look, of how many bytes at most, and how many
// came; 0: none were there.
func (in *hostInput) took(word uint32, wanted, came int) {
	if word&ended == 0 && came < wanted {
		in.drained.Store(word | 1)
	}
}

// end has each read asked of the host from now on.
func (in *hostInput) end() {
	if a := in.arrivals.Load(); a != nil {
		a.word.Or(ended)
	}
}
