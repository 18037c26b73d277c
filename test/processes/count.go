//go:build linux

package main

// With -count, the emulator's clock advances by one nanosecond for each instruction (-icount of QEMU): results are
// then numbers of instructions, which do not depend on what else the host does. That needs machines of one CPU. The
// real-time clock follows (-rtc clock=vm); if it followed the host's clock, a guest would take the difference between
// the two for a pause of the machine, and set its wall clock.

// countInstructions replaces QEMU by a script that adds the options with which QEMU counts instructions.
func countInstructions(dir string) error {
	return replaceEmulator(dir, "-icount shift=0,sleep=off -rtc clock=vm")
}
