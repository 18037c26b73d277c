package main

import (
	"os"
	"os/signal"

	"example.com/hostile/attack"
)

func init() { techniques["core"] = tryCore }

// tryCore makes the kernel write a core dump.
func tryCore() {
	for _, way := range attack.Ways {
		way(302, 0, 4, attack.Words(1<<30, 1<<30), 0, 0, 0)
		way(160, 4, attack.Words(1<<30, 1<<30), 0, 0, 0, 0)
		way(157, 4, 1, 0, 0, 0, 0)
		way(80, attack.String("/tmp/loam-hostile"), 0, 0, 0, 0, 0)
	}
	signal.Reset()
	attack.Gate(39, 0, 0, 0, 0, 0, 0)
	attack.Gate(62, uintptr(os.Getpid()), 6, 0, 0, 0, 0)
}
