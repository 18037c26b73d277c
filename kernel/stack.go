package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
)

// The kernel's stacks. Each CPU has one for serving calls and interrupts, and one for faults in the kernel and
// other fatal exceptions. Above the latter is a small one for debug exceptions (debug in the entry code). The memory
// below the first two is unmapped, and the g that runs on a stack has no bounds. So Go's check for stack space always
// succeeds, an overflow causes a page fault, and the processor reports the fault on the second stack (crash.go).
//
// Rejected: a g with bounds. The check would call runtime.morestack, which assumes the stack of the program's
// thread.

// Sizes of the stacks, in pages.
const (
	stackPages = 8
	crashPages = 4
)

// stackSpan is the distance between stacks in bytes. Half of it is not mapped. No function's stack frame is that large, so
// an overflow faults and does not reach the next stack.
const stackSpan = 128 << 10

// spillRoom is space above the return address of Enter and StartCPU. A Go function may store its register arguments
// there (Go's ABI, "Function call stack").
const spillRoom = 64

// crashRoom is space for the address of the cpu structure, above the frame that the processor pushes. An exception may
// arrive while GS belongs to a program in ring 3. Its entry code then loads the address of the structure from this space.
const crashRoom = 16

// debugRoom is the size of the stack for debug exceptions, which is above the stack for faults. The entry code stores a
// whole frame there before it ends the machine. The end of this stack has the address of the cpu structure too.
const debugRoom = amd64.FrameSize

// mapStacks maps a CPU's stacks; false if there is no memory for them.
func (k *core) mapStacks(c *cpu) bool {
	top := boot.Stacks + uint64(c.number)*2*stackSpan + stackSpan
	if !k.mapStack(top, stackPages) || !k.mapStack(top+stackSpan, crashPages) {
		return false
	}
	c.stack, c.debugEnd = uintptr(top-spillRoom), uintptr(top+stackSpan-crashRoom)
	c.crashEnd = c.debugEnd - debugRoom - crashRoom
	return true
}

// mapStack maps count pages that end at address top. All pages are mapped at once: the kernel cannot serve a page
// fault on its own stack.
func (k *core) mapStack(top, count uint64) bool {
	for va := top - count*amd64.PageSize; va < top; va += amd64.PageSize {
		if pa, ok := k.pages.Alloc(); !ok || !k.tables.Map(va, pa, amd64.PageSize, amd64.PageWrite|k.noExecute(), k.allocPage) {
			return false
		}
	}
	return true
}

// isStack reports whether an address is in a stack or between stacks.
func isStack(va uint64) bool {
	return va >= boot.Stacks && va < boot.Stacks+maxCPUs*2*stackSpan
}
