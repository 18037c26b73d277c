package task

import "sync/atomic"

// attention is a word of a thread that the thread's loop and its calls check. One load returns both whether a request is
// pending, and whether calls have hooks (a tracer or a filter).
type attention struct{ bits atomic.Uint32 }

// Bits of attention: a request is pending, and a tracer or filters (hooks) must see the system calls of the thread.
const (
	requested = 1 << iota
	hookedCall
	filteredCall
)

// Load reports whether a request is pending.
func (a *attention) Load() bool { return a.bits.Load()&requested != 0 }

// Store records that a request is pending, or that none is.
func (a *attention) Store(on bool) { a.set(requested, on) }

// hook sets or clears the flag that makes each system call of the thread check for a tracer.
func (a *attention) hook(on bool) { a.set(hookedCall, on) }

// hooked reports whether a tracer wants to see the system calls of the thread.
func (a *attention) hooked() bool { return a.bits.Load()&hookedCall != 0 }

// filter records that the system calls of the thread are filtered (seccomp).
func (a *attention) filter() { a.set(filteredCall, true) }

func (a *attention) set(bit uint32, on bool) {
	if on {
		a.bits.Or(bit)
	} else {
		a.bits.And(^bit)
	}
}
