package unikernel

// Platform is what a program runs on.
type Platform int

// Platforms.
const (
	Process Platform = iota // a process of Linux
	Machine                 // a virtual machine, in ring 0
)

// String is the name that users give it.
func (p Platform) String() string {
	if p == Machine {
		return "vm"
	}
	return "process"
}
