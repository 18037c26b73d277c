package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["truncate"] = tryTruncate }

// tryTruncate changes a file by its path: its size, mode, owner, times and attributes. It also removes it.
func tryTruncate() {
	for _, way := range attack.Ways {
		secret := attack.String(attack.Secret)
		way(76, secret, 0, 0, 0, 0, 0)
		way(90, secret, 0o777, 0, 0, 0, 0)
		way(92, secret, 1, 1, 0, 0, 0)
		way(87, secret, 0, 0, 0, 0, 0)
		way(132, secret, 0, 0, 0, 0, 0)
		way(188, secret, attack.String("user.x"), secret, 1, 0, 0)
	}
}
