package kernel

import (
	"loam/abi/linux"
	"loam/kernel/space"
)

// Limits of the program (getrlimit(2)). They are stored and returned but not enforced. A program that sets limits,
// to disable core dumps or to raise the number of descriptors, works unchanged.

// Numbers of resources, and the number of descriptors that package posix supports.
const (
	resources       = 16 // number of resources (RLIM_NLIMITS)
	descriptors     = 7  // number of RLIMIT_NOFILE
	mostDescriptors = 1 << 20
)

// limitsOf returns the soft and the hard limit of a resource.
func (k *core) limitsOf(resource uint64) (soft, hard uint64) {
	soft, hard = ^k.limitsSet[resource][0], ^k.limitsSet[resource][1]
	if resource == descriptors {
		return min(soft, mostDescriptors), min(hard, mostDescriptors)
	}
	return soft, hard
}

// limits implements prlimit(2) for a privileged user, who may raise the hard limit. set is the address of the new limits,
// and addr the address for the old ones; 0: none.
func (k *core) limits(resource, set, addr uint64) int64 {
	const size = 16
	switch {
	case resource >= resources:
		return -int64(linux.EINVAL)
	case set != 0 && !k.touch(set, size, space.Read), addr != 0 && !k.touch(addr, size, space.Write):
		return -int64(linux.EFAULT)
	}
	soft, hard := k.limitsOf(resource)
	if set != 0 {
		newSoft, newHard := *word(set), *word(set + 8)
		switch {
		case newSoft > newHard:
			return -int64(linux.EINVAL)
		case resource == descriptors && newHard > mostDescriptors:
			return -int64(linux.EPERM)
		}
		k.limitsSet[resource] = [2]uint64{^newSoft, ^newHard}
	}
	if addr != 0 {
		*word(addr), *word(addr + 8) = soft, hard
	}
	return 0
}
