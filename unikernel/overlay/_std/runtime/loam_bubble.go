package runtime

// Goroutines leave their testing/synctest bubble inside Loam. A bubble belongs to the program and does not
// include the kernel; on Linux, a goroutine leaves it by entering the kernel. Read runtime/synctest.go
// first.
//
// This has three effects:
// - Channels, timers and goroutines that Loam creates belong to no bubble, so Loam's own goroutines may use them.
// - Time inside Loam is the machine's time.
// - A goroutine that blocks inside Loam is not durably blocked, so the bubble's clock does not advance meanwhile.
//
// A bubble counts its goroutines when their status changes. While gp.bubble is nil, the bubble does not notice
// changes, so it still counts the goroutine as running. The runtime itself leaves a bubble in the same way to
// start a garbage collection (gcStart).
//
// Rejected: making the waiting primitives inside Loam independent of bubbles. Channels and timers depend on
// bubbles in many places, and mutexes stop the fake clock of tests that run a whole stack inside their
// bubble.

import "unsafe"

// loamLeaveBubble removes the calling goroutine from its bubble and returns the bubble, or nil. The caller
// keeps the result on its stack, which keeps the bubble alive.
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

// loamEnterBubble puts the calling goroutine back into a bubble. It is nosplit because its callers in
// package syscall are.
//
//go:linkname loamEnterBubble syscall.loamEnterBubble
//go:nosplit
func loamEnterBubble(bubble unsafe.Pointer) {
	if bubble != nil {
		getg().bubble = (*synctestBubble)(bubble)
	}
}
