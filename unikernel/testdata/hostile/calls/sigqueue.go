package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["sigqueue"] = trySigqueue }

// trySigqueue signals a process by rt_sigqueueinfo(2).
func trySigqueue() {
	for _, way := range attack.Ways {
		info := attack.Words(9, ^uintptr(0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		way(129, attack.Victim(), 9, info, 0, 0, 0)
		way(297, attack.Victim(), attack.Victim(), 9, info, 0, 0)
	}
}
