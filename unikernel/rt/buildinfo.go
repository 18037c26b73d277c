package rt

import (
	_ "unsafe" // for go:linkname

	"loam/unikernel/guest"
)

// A program reads the same build information as without Loam. The build flag for Loam's own packages is
// removed. A program whose source lies in the module cache is built from a copy, through a replace
// directive; the original module is restored.

func init() {
	correctBuildInfo(func(info, borrowed string) string {
		return guest.RestoreModule(guest.HideProfile(info), borrowed)
	})
}

//go:linkname correctBuildInfo runtime.loamBuildInfo
func correctBuildInfo(f func(info, borrowed string) string)
