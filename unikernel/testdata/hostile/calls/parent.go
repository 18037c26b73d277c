package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["parent"] = tryParent }

// tryParent changes its place among the processes: its signal at the death of its parent, its role as a reaper, its
// session, its process group and its user.
func tryParent() {
	for _, way := range attack.Ways {
		way(157, 1, 0, 0, 0, 0, 0)
		way(157, 36, 1, 0, 0, 0, 0)
		way(112, 0, 0, 0, 0, 0, 0)
		way(109, 0, attack.Victim(), 0, 0, 0, 0)
		way(105, 0, 0, 0, 0, 0, 0)
		way(117, 0, 0, 0, 0, 0, 0)
	}
}
