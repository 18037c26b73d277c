package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["keys"] = tryKeys }

// tryKeys uses the kernel's keyrings, which processes of one user share.
func tryKeys() {
	for _, way := range attack.Ways {
		kind, name := attack.String("user"), attack.String("loam-hostile")
		for ring := range uintptr(6) { // KEY_SPEC_THREAD_KEYRING to KEY_SPEC_GROUP_KEYRING
			if way(248, kind, name, attack.String("secret"), 6, ^ring, 0) > 0 {
				println("a key of the host")
			}
			way(249, kind, name, 0, ^ring, 0, 0)
			if way(250, 0, ^ring, 1, 0, 0, 0) > 0 { // KEYCTL_GET_KEYRING_ID
				println("a keyring of the host")
			}
		}
	}
}
