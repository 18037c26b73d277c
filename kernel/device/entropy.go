package device

import (
	"encoding/binary"

	"loam/kernel"
)

// Stir mixes unpredictable random bytes into the machine's random number generator (kernel/random.go).
func Stir(b [32]byte) {
	for half := b[:]; len(half) > 0; half = half[16:] {
		call(kernel.CallStir, uintptr(binary.LittleEndian.Uint64(half)), uintptr(binary.LittleEndian.Uint64(half[8:])))
	}
}
