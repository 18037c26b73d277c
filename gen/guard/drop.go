//go:build linux

package guard

import (
	"fmt"
	"syscall"
)

// nobody is the user, and the group, that owns nothing.
const nobody = 65534

// Drop gives up root for good: descriptors stay open, and nothing else can be
// opened that nobody may not open. The kernel takes the capabilities away with
// the user. A process that is not root keeps what it has.
func Drop() error {
	if syscall.Geteuid() != 0 {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return cannot("setgroups", err)
	}
	if err := syscall.Setresgid(nobody, nobody, nobody); err != nil {
		return cannot("setresgid", err)
	}
	if err := syscall.Setresuid(nobody, nobody, nobody); err != nil {
		return cannot("setresuid", err)
	}
	return nil
}

func cannot(call string, err error) error {
	return fmt.Errorf("privileges cannot be dropped: %s: %w: --keep-privileges does without", call, err)
}
