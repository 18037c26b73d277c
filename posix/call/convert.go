package call

import (
	"encoding/binary"

	"loam/abi/linux"
)

// Conversions from registers to arguments of package posix. For an argument of C type int, the upper half of the register is
// ignored, as on Linux.

var le = binary.LittleEndian

// fd returns the descriptor in a register.
func fd(a uint64) int { return int(int32(a)) }

// number returns the C int in a register.
func number(a uint64) int { return int(int32(a)) }

// unsigned returns the C unsigned int in a register.
func unsigned(a uint64) int { return int(uint32(a)) }

// result converts a number and an errno to the results of a Serve, the function that
// serves a row of the table of system calls.
func result(n int, errno linux.Errno) (uint64, linux.Errno) { return uint64(n), errno }

// fail returns the results of a call that fails with errno, or that succeeds with 0 if errno is 0.
func fail(errno linux.Errno) (uint64, linux.Errno) { return 0, errno }
