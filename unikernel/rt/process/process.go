// Package process connects Loam to a program that runs as a Linux process, by starting package rt. The
// process is already confined (unikernel/sandbox): the host serves only the calls that package seal lists.
// All other calls that the program makes in assembly trap, and Loam serves them as if they had come through
// package syscall. A guest of this kind imports no other package of Loam directly.
package process

import "loam/unikernel/rt"

func init() { rt.StartProcess() }
