package main

import (
	"syscall"

	"example.com/hostile/attack"
)

func init() { techniques["clocks"] = tryClocks }

// tryClocks reads the CPU-time clocks of other processes.
func tryClocks() {
	for pid := uintptr(1); pid < 70000; pid++ {
		if pid == uintptr(syscall.Getpid()) {
			continue
		}
		clock := uintptr(uint32(^pid<<3 | 2))
		if attack.Gate(syscall.SYS_CLOCK_GETTIME, clock, attack.Words(0, 0), 0, 0, 0, 0) == 0 {
			println("process", pid, "is there")
		}
		if attack.Gate(syscall.SYS_CLOCK_GETRES, clock, attack.Words(0, 0), 0, 0, 0, 0) == 0 {
			println("process", pid, "is there")
		}
	}
}
