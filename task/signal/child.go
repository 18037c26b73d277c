package signal

// Values of si_code with SIGCHLD (sigaction(2)).
const (
	ChildExited = 1 + iota
	ChildKilled
	ChildDumped
	ChildTrapped
	ChildStopped
	ChildContinued
)

const coreFlag = 0x80 // bit of a wait status: the process has dumped core

// ChildCode returns the si_code for a status of a process that has ended.
func ChildCode(status int32) int32 {
	switch {
	case status&0x7f == 0:
		return ChildExited
	case status&coreFlag != 0:
		return ChildDumped
	}
	return ChildKilled
}
