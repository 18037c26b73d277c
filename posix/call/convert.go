package call

import (
	"encoding/binary"

	"loam/abi/linux"
)

// Conversions from registers to arguments of package posix. Like Linux, they use only the lower half of
// a register for an int.

var le = binary.LittleEndian

// fd returns a descriptor.
func fd(a uint64) int { return int(int32(a)) }

// number returns an int.
func number(a uint64) int { return int(int32(a)) }

// unsigned returns an unsigned int.
func unsigned(a uint64) int { return int(uint32(a)) }

// result returns a number and an errno as the result of a call.
func result(n int, errno linux.Errno) (uint64, linux.Errno) { return uint64(n), errno }

// fail returns the results of a call that fails with errno, or that succeeds with 0 if errno is 0.
func fail(errno linux.Errno) (uint64, linux.Errno) { return 0, errno }
