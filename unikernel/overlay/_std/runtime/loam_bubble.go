package runtime

// A bubble of testing/synctest is the program's, and the kernel is not in it. A
// goroutine of the program leaves its bubble while it is inside Loam, as on
// Linux it does when it enters the kernel: what Loam makes there (channels,
// timers, goroutines) belongs to no bubble, so its own goroutines may signal it;
// time is the machine's; and a goroutine that blocks there is not durably
// blocked, so the bubble's clock waits for it. Read runtime/synctest.go first.
//
// The bubble counts goroutines as their status changes. While gp.bubble is nil
// it hears nothing, and so the goroutine stays what it was when it left, running.
// The runtime leaves a bubble in the same way to start a collection (gcStart).
//
// Rejected: to make what waits inside Loam indifferent to bubbles. Channels and
// timers are not, in many places, and mutexes stop the fake clock of tests that
// have a whole stack inside their bubble.

import "unsafe"

// loamLeaveBubble takes the calling goroutine out of its bubble and returns
// that, or nil. The caller holds it on its stack, which keeps it alive.
//
// It is nosplit because loamEnter is.
//
//go:linkname loamLeaveBubble
//go:nosplit
func loamLeaveBubble() unsafe.Pointer {
	gp := getg()
	bubble := gp.bubble
	if bubble != nil {
		gp.bubble = nil
	}
	return unsafe.Pointer(bubble)
}

// loamEnterBubble puts it back. It is nosplit because its callers in package
// syscall are.
//
//go:linkname loamEnterBubble syscall.loamEnterBubble
//go:nosplit
func loamEnterBubble(bubble unsafe.Pointer) {
	if bubble != nil {
		getg().bubble = (*synctestBubble)(bubble)
	}
}
