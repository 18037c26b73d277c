// Package attention has the word by which other threads request the attention of a thread.
package attention

import "sync/atomic"

// Word is a word of a thread that the thread's loop and its calls check. One load returns both whether a request is
// pending, and whether calls have hooks (a tracer or a filter).
type Word struct{ bits atomic.Uint32 }

// Bits of a Word: a request is pending, and a tracer or filters (hooks) must see the system calls of the thread.
const (
	requested = 1 << iota
	hookedCall
	filteredCall
)

// Load reports whether a request is pending.
func (a *Word) Load() bool { return a.bits.Load()&requested != 0 }

// Any reports whether a request is pending, or calls have hooks.
func (a *Word) Any() bool { return a.bits.Load() != 0 }

// State reports whether a request is pending, and whether calls have hooks.
func (a *Word) State() (pending, hooks bool) {
	bits := a.bits.Load()
	return bits&requested != 0, bits&(hookedCall|filteredCall) != 0
}

// Store records that a request is pending, or that none is.
func (a *Word) Store(on bool) { a.set(requested, on) }

// Hook sets or clears the flag that makes each system call of the thread check for a tracer.
func (a *Word) Hook(on bool) { a.set(hookedCall, on) }

// Hooked reports whether a tracer wants to see the system calls of the thread.
func (a *Word) Hooked() bool { return a.bits.Load()&hookedCall != 0 }

// Filter records that the system calls of the thread are filtered (seccomp).
func (a *Word) Filter() { a.set(filteredCall, true) }

func (a *Word) set(bit uint32, on bool) {
	if on {
		a.bits.Or(bit)
	} else {
		a.bits.And(^bit)
	}
}
