package seccomp_test

import (
	"testing"

	"loam/abi/linux"
	"loam/task/seccomp"
)

// The strict mode ignores the upper 32 bits of RAX, which are not part of the number.
func TestStrictAllows(t *testing.T) {
	for number, want := range map[uint64]bool{
		linux.SYS_READ: true, 1<<32 | linux.SYS_WRITE: true, 1<<63 | linux.SYS_EXIT: true,
		linux.SYS_OPEN: false, 1<<32 | linux.SYS_OPEN: false, 1<<31 | linux.SYS_READ: false,
	} {
		if got := seccomp.StrictAllows(number); got != want {
			t.Errorf("%#x: %v", number, got)
		}
	}
}
