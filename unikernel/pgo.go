package unikernel

import (
	_ "embed"
	"path/filepath"
	"strings"

	"loam/unikernel/guest"
)

// Loam's own packages are compiled for guests with a profile of running guests (go.dev/doc/pgo): frequent calls are inlined
// more. The program's packages and the standard library are compiled as without Loam. Decision 37 has the measurements.

// guestProfile is the profile in the format of go tool preprofile. After its first line, it has three lines
// per call: the caller, the callee, and the line in the caller with the weight. It contains only calls made
// by Loam's packages. `make pgo` generates it.
//
//go:embed guest.pgo
var guestProfile []byte

// profileFile is the profile's name in the folder of a std.
const profileFile = "loam.pgo"

// profileInGuest returns the profile with the import paths that Loam's packages have in a guest.
func profileInGuest() []byte {
	return []byte(strings.ReplaceAll(string(guestProfile), module+"/", guestModule+"/"))
}

// profileFlags returns the flags that make the go command compile Loam's packages with the profile. Later
// flags of the user override them: -gcflags=all=-N disables all optimisation.
func profileFlags(dir string) []string {
	return []string{"-gcflags=" + guest.ProfiledPackages + "=" + quote([]string{guest.ProfileFlag + filepath.Join(dir, profileFile)})}
}
