package main

import (
	"runtime"

	"example.com/hostile/attack"
)

func init() { techniques["many-threads"] = tryManyThreads }

// tryManyThreads makes the call that is allowed only once from many threads at the same time.
func tryManyThreads() {
	done := make(chan bool)
	for range 64 {
		go func() {
			runtime.LockOSThread()
			for range 20 {
				attack.Exec(func(path, args, env uintptr) int { return attack.Gate(322, 0, path, args, env, 0, 0) })
				attack.Write(attack.Gate, func(path, flags uintptr) int {
					return attack.Gate(437, attack.Here, path, attack.Words(flags, 0o666, 0), 24, 0, 0)
				})
			}
			done <- true
		}()
	}
	for range 64 {
		<-done
	}
}
