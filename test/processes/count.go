//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// With -count, the emulator's clock advances by one nanosecond for each instruction (-icount of QEMU): results are
// then numbers of instructions, which do not depend on what else the host does. That needs machines of one CPU. The
// real-time clock follows (-rtc clock=vm); by the host's clock, a guest would take the difference for a pause, and set its
// wall clock.

// countInstructions puts a qemu-system-x86_64 in front of PATH that adds the option.
func countInstructions(dir string) error {
	real, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		return err
	}
	bin := filepath.Join(dir, "bin")
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in\n*-smp*) exec %s \"$@\" -icount shift=0,sleep=off -rtc clock=vm ;;\nesac\nexec %s \"$@\"\n", real, real)
	// The loam command starts the emulator as a user without rights, who has to reach the script.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(bin, "qemu-system-x86_64"), []byte(script), 0o755); err != nil {
		return err
	}
	return os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}
