//go:build linux

package main

// With -count, the emulator's clock advances by one nanosecond for each instruction (-icount of QEMU): results are
// then numbers of instructions, which do not depend on what else the host does. That needs machines of one CPU. The
// real-time clock follows (-rtc clock=vm); by the host's clock, a guest would take the difference for a pause, and set its
// wall clock.

// countInstructions makes the emulator count.
func countInstructions(dir string) error {
	return replaceEmulator(dir, "-icount shift=0,sleep=off -rtc clock=vm")
}
