package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
)

// The kernel's own stacks: each CPU has one on which it serves, and one for faults of the
// kernel's own and whatever else is the end. Each is mapped at addresses of its own, with
// nothing below it, and the g of who runs on it has no bounds: so Go's check for room
// always finds some, what needs more meets a page that is not there, and the processor
// tells of that on the other stack (crash.go). With bounds, the check would call
// runtime.morestack, which takes the stack for that of the program's thread.

// Sizes of the stacks, in pages.
const (
	stackPages = 8
	crashPages = 4
)

// stackSpan is how far apart stacks are: no function's frame reaches over what is not
// mapped, since none fits half of it.
const stackSpan = 128 << 10

// spillRoom is for what Enter and StartCPU, as all functions may, put above their return
// address: arguments that have come in registers (Go's ABI, "Function call stack").
const spillRoom = 64

// mapStacks gives a CPU its stacks; false if there is no memory for them.
func (c *cpu) mapStacks() bool {
	top := boot.Stacks + uint64(c.number)*2*stackSpan + stackSpan
	if !mapStack(top, stackPages) || !mapStack(top+stackSpan, crashPages) {
		return false
	}
	c.stack, c.crashEnd = uintptr(top-spillRoom), uintptr(top+stackSpan)
	return true
}

// mapStack maps pages that end at an address. All are there from the beginning: the
// kernel cannot have pages appear under its own feet.
func mapStack(top, count uint64) bool {
	for va := top - count*amd64.PageSize; va < top; va += amd64.PageSize {
		if pa, ok := frames.Alloc(); !ok || !tables.Map(va, pa, amd64.PageSize, amd64.PageWrite|noExecute(), allocFrame) {
			return false
		}
	}
	return true
}

// isStack reports whether an address is one of the stacks', or lies between them.
func isStack(va uint64) bool {
	return va >= boot.Stacks && va < boot.Stacks+maxCPUs*2*stackSpan
}
