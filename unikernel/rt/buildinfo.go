package rt

import (
	_ "unsafe" // for go:linkname

	"loam/unikernel/guest"
)

// A program whose source lies in the module cache is built from a copy, which
// takes the place of its module by a replace directive. The program is not to see
// that: what it reads about itself is what it would read without Loam.

func init() { correctBuildInfo(guest.RestoreModule) }

//go:linkname correctBuildInfo runtime.loamBuildInfo
func correctBuildInfo(f func(info, borrowed string) string)
