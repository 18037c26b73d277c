//go:build linux

package tap

import "loam/link"

// ThinAndLeave attaches the filter of a thinning to a descriptor, and leaves it there, as a process that is killed
// does.
func ThinAndLeave(fd int, t link.Thinning) error { return attachFilter(fd, thinner(t)) }
