package main

import (
	"example.com/hostile/attack"
)

func init() { techniques["userfault"] = tryUserfault }

// tryUserfault handles its page faults itself (userfaultfd(2)), by which it could stop the kernel in the middle of a
// copy.
func tryUserfault() {
	for _, way := range attack.Ways {
		for _, flags := range []uintptr{0, 1, 0x80800} { // UFFD_USER_MODE_ONLY; O_CLOEXEC and O_NONBLOCK
			if way(323, flags, 0, 0, 0, 0, 0) >= 0 {
				println("userfaultfd works")
			}
		}
	}
}
