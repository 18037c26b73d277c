// Package limit stores the resource limits of a program (getrlimit(2)). They are stored and returned but not enforced. A program
// that sets limits, to disable core dumps or to raise the number of descriptors, works unchanged.
package limit

import "loam/abi/linux"

// Numbers of resources, and the number of descriptors that package posix supports.
const (
	Resources       = 16 // number of resources (RLIM_NLIMITS)
	Descriptors     = 7  // number of RLIMIT_NOFILE
	MostDescriptors = 1 << 20
)

// Table holds the limits. The zero value has no limits except MostDescriptors.
type Table [Resources][2]uint64 // soft and hard limit of each resource with all bits inverted, so that zero means unlimited

// Get returns the soft and the hard limit of a resource, which must be below Resources.
func (t *Table) Get(resource uint64) (soft, hard uint64) {
	soft, hard = ^t[resource][0], ^t[resource][1]
	if resource == Descriptors {
		return min(soft, MostDescriptors), min(hard, MostDescriptors)
	}
	return soft, hard
}

// Set changes the limits of a resource for a privileged user, who may raise the hard limit. It returns 0 or an errno.
func (t *Table) Set(resource, soft, hard uint64) linux.Errno {
	switch {
	case soft > hard:
		return linux.EINVAL
	case resource == Descriptors && hard > MostDescriptors:
		return linux.EPERM
	}
	t[resource] = [2]uint64{^soft, ^hard}
	return 0
}
