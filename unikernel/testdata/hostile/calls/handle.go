package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["handle"] = tryHandle }

// tryHandle opens a file by its handle (open_by_handle_at(2)), which root may do.
func tryHandle() {
	for _, way := range attack.Ways {
		handle := attack.Words(64, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		id := attack.Words(0)
		way(303, attack.Here, attack.String(attack.Secret), handle, id, 0, 0)
		attack.Print(way, way(304, attack.Here, handle, 0, 0, 0, 0))
	}
}
