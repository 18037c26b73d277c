package kernel

import "sync/atomic"

// request is what other CPUs may ask of one, which serves it when it looks. The zero
// value asks for nothing. It counts who has asked, so that one who asks while another is
// served is served too: for him it may have come too early.
type request uint32

// ask is for the others.
func (r *request) ask() { atomic.AddUint32((*uint32)(r), 1) }

// open reports whether something that was asked for has not been served yet.
func (r *request) open() bool { return atomic.LoadUint32((*uint32)(r)) != 0 }

// serve does what was asked for, if anything was.
func (r *request) serve(do func()) {
	for {
		asked := atomic.LoadUint32((*uint32)(r))
		if asked == 0 {
			return
		}
		do()
		if atomic.CompareAndSwapUint32((*uint32)(r), asked, 0) {
			return
		}
	}
}
