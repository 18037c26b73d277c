package unikernel

import (
	_ "embed"
	"path/filepath"
	"strings"

	"loam/unikernel/guest"
)

// Loam's own packages are compiled for a guest by a profile of guests at work (go.dev/doc/pgo):
// what is called often is inlined more. The program's packages, and those of the standard
// library, are compiled as the user says, and as they would be without Loam. Decision 37 says
// what that brings.

// guestProfile is that profile, as go tool preprofile writes it: after its first line, three
// lines for each call that was seen: who calls, whom, and from which line of its own with
// which weight. Only calls by Loam's packages are in it. `make pgo` makes it.
//
//go:embed guest.pgo
var guestProfile []byte

// profileFile is its name in the folder of a std.
const profileFile = "loam.pgo"

// profileOf is the profile with the names that Loam's packages have in a guest.
func profileOf(checkout string) []byte {
	if checkout != "" {
		return guestProfile
	}
	return []byte(strings.ReplaceAll(string(guestProfile), module+"/", guestModule+"/"))
}

// profileFlags have the go command compile Loam's packages by the profile. Flags of the
// user's that follow count for more: with -gcflags=all=-N nothing is optimised.
func profileFlags(dir, checkout string) []string {
	pattern := guest.ProfiledPackages
	if checkout != "" {
		pattern = module + "/..."
	}
	return []string{"-gcflags=" + pattern + "=" + quote([]string{guest.ProfileFlag + filepath.Join(dir, profileFile)})}
}
