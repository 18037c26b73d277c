//go:build linux

package tap

import "loam/link"

// ThinAndLeave attaches the filter of a thinning to a descriptor, as a process does that is killed
// afterwards.
func ThinAndLeave(fd int, t link.Thinning) error { return attachFilter(fd, thinner(t)) }
