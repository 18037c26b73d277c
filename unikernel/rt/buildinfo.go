package rt

import (
	_ "unsafe" // for go:linkname

	"loam/unikernel/guest"
)

// What a program reads about itself is what it would read without Loam: nothing of the flag
// for Loam's own packages, and nothing of a copy: a program whose source lies in the module
// cache is built from one, which takes the place of its module by a replace directive.

func init() {
	correctBuildInfo(func(info, borrowed string) string {
		return guest.RestoreModule(guest.HideProfile(info), borrowed)
	})
}

//go:linkname correctBuildInfo runtime.loamBuildInfo
func correctBuildInfo(f func(info, borrowed string) string)
