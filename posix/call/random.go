package call

import (
	"crypto/rand"

	"loam/abi/linux"
)

// GetRandom implements getrandom(2). The generator is always seeded, so no flag makes a difference.
func GetRandom(m Memory, a Args) (uint64, linux.Errno) {
	const known, piece = 7, 4096
	if a.A3&^known != 0 {
		return 0, linux.EINVAL
	}
	n := min(a.A2, 1<<31-1)
	b := make([]byte, min(n, piece))
	for done := uint64(0); done < n; {
		part := b[:min(n-done, piece)]
		rand.Read(part)
		if errno := m.Write(a.A1+done, part); errno != 0 {
			return 0, errno
		}
		done += uint64(len(part))
	}
	return n, 0
}
