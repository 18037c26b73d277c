package kernel

import (
	"syscall"

	"loam/kernel/space"
)

// Limits of the program (getrlimit(2)). They are kept for who asks and hold nothing back:
// a program that sets one, to have no core dumps or to be sure of its descriptors, goes on.

// What limits there are, and how many descriptors package posix has.
const (
	resources       = 16 // RLIM_NLIMITS
	descriptors     = 7  // RLIMIT_NOFILE
	mostDescriptors = 1 << 20
)

// limitsSet has what was set: soft and hard limit, each with its bits inverted, so that
// zero is no limit at all.
var limitsSet [resources][2]uint64

// limitsOf returns the soft and the hard limit of a resource.
func limitsOf(resource uint64) (soft, hard uint64) {
	soft, hard = ^limitsSet[resource][0], ^limitsSet[resource][1]
	if resource == descriptors {
		return min(soft, mostDescriptors), min(hard, mostDescriptors)
	}
	return soft, hard
}

// limits is prlimit(2) by a user who may raise what he has lowered.
func limits(resource, set, addr uint64) int64 {
	const size = 16
	switch {
	case resource >= resources:
		return -int64(syscall.EINVAL)
	case set != 0 && !touch(set, size, space.Read), addr != 0 && !touch(addr, size, space.Write):
		return -int64(syscall.EFAULT)
	}
	soft, hard := limitsOf(resource)
	if set != 0 {
		newSoft, newHard := *word(set), *word(set + 8)
		switch {
		case newSoft > newHard:
			return -int64(syscall.EINVAL)
		case resource == descriptors && newHard > mostDescriptors:
			return -int64(syscall.EPERM)
		}
		limitsSet[resource] = [2]uint64{^newSoft, ^newHard}
	}
	if addr != 0 {
		*word(addr), *word(addr + 8) = soft, hard
	}
	return 0
}
