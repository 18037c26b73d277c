// Package loam carries the source of the packages that are linked into a guest,
// so that the loam command alone can build one: see unikernel.
package loam

import "embed"

// Source has the files of the packages below these folders; of these, a guest
// takes those that unikernel/rt imports, and in a virtual machine the kernel.
//
//go:embed abi wire link stack fs posix mem exec task arch boot block driver kernel internal/counter internal/crew internal/list internal/machinecode internal/siphash unikernel/channel unikernel/complaint unikernel/guest unikernel/rt usernet/hand
var Source embed.FS
