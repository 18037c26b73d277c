package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["limits"] = tryLimits }

// tryLimits reads and sets the limits, priorities and CPU affinities of other processes.
func tryLimits() {
	for _, way := range attack.Ways {
		if way(302, attack.Victim(), 7, 0, attack.Words(0, 0), 0, 0) == 0 || way(302, attack.Victim(), 7, attack.Words(1, 1), 0, 0, 0) == 0 {
			println("limits of another process")
		}
		way(141, 0, attack.Victim(), 19, 0, 0, 0)
		way(203, attack.Victim(), 8, attack.Words(1), 0, 0, 0)
		way(144, attack.Victim(), 5, attack.Words(0), 0, 0, 0)
		way(251, 1, attack.Victim(), 0x6000, 0, 0, 0)
	}
}
