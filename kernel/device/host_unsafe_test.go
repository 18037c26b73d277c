package device

import _ "unsafe" // for go:linkname

// On a host there is no Loam kernel. These functions replace those that Loam adds to package runtime when it builds a guest.

//go:linkname hostCall runtime.loamCall
func hostCall(_, _, _ uintptr) (result, errno uintptr) { return 0, 1 }

//go:linkname hostPollInterrupts runtime.loamPollInterrupts
func hostPollInterrupts() {}

//go:linkname hostAwaitInterrupts runtime.loamAwaitInterrupts
func hostAwaitInterrupts() uint64 { select {} }

//go:linkname hostCompletes runtime.loamCompletes
func hostCompletes(bool) {}
