//go:build linux

package guard

import (
	"fmt"
	"syscall"
)

// unprivileged is the user ID and group ID of a user without any rights.
const unprivileged = 65534

// Drop gives up root permanently. Open descriptors stay open. Afterwards, the process can open only files that an
// unprivileged user may open. The kernel removes all capabilities when the user ID changes. Drop does nothing in a
// process that is not root.
func Drop() error {
	if syscall.Geteuid() != 0 {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return cannot("setgroups", err)
	}
	if err := syscall.Setresgid(unprivileged, unprivileged, unprivileged); err != nil {
		return cannot("setresgid", err)
	}
	if err := syscall.Setresuid(unprivileged, unprivileged, unprivileged); err != nil {
		return cannot("setresuid", err)
	}
	return nil
}

func cannot(call string, err error) error {
	return fmt.Errorf("privileges cannot be dropped: %s: %w: --keep-privileges does without", call, err)
}
