package kernel

import "sync/atomic"

// request is a request from other CPUs to one CPU, which polls for it. The zero value is no request. It counts the
// requests. If a request arrives while an earlier one is being served, the CPU serves once more, because it may
// already have done the part that the later request needs.
type request uint32

// ask makes a request to the CPU that owns r. Any CPU may call it.
func (r *request) ask() { atomic.AddUint32((*uint32)(r), 1) }

// open reports whether a request has not been served yet.
func (r *request) open() bool { return atomic.LoadUint32((*uint32)(r)) != 0 }

// serve calls the function do until no request is open. Only the CPU that was asked calls it.
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
