package main

import (
	"syscall"

	"example.com/hostile/attack"
)

func init() { techniques["timers"] = tryTimers }

// tryTimers creates timers on the CPU-time clocks of other processes.
func tryTimers() {
	for pid := uintptr(1); pid < 70000; pid++ {
		if pid != uintptr(syscall.Getpid()) && attack.Jump(syscall.SYS_TIMER_CREATE, uintptr(uint32(^pid<<3|2)), 0, attack.Words(0), 0, 0, 0) == 0 {
			println("process", pid, "is there")
		}
	}
}
