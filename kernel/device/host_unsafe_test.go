package device

import _ "unsafe" // for go:linkname

// On a host there is no kernel of ours: what the overlay has in package runtime is here.

//go:linkname hostCall runtime.loamCall
func hostCall(_, _, _ uintptr) (result, errno uintptr) { return 0, 1 }

//go:linkname hostPollInterrupts runtime.loamPollInterrupts
func hostPollInterrupts() {}

//go:linkname hostAwaitInterrupts runtime.loamAwaitInterrupts
func hostAwaitInterrupts() uint64 { select {} }
