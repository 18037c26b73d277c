package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["openat2"] = tryOpenat2 }

// tryOpenat2 calls openat2(2) three times: package sandbox may answer the first call, and the later ones must fail too.
func tryOpenat2() {
	for range 3 {
		for _, way := range attack.Ways {
			attack.Write(way, func(path, flags uintptr) int {
				return way(437, attack.Here, path, attack.Words(flags, 0o666, 0), 24, 0, 0)
			})
		}
	}
}
