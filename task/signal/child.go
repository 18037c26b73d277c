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

// CoreFlag is a bit of a wait status: the process has dumped core.
const CoreFlag = 0x80

// ChildCode returns the si_code for a status of a process that has ended.
func ChildCode(status int32) int32 {
	switch {
	case status&0x7f == 0:
		return ChildExited
	case status&CoreFlag != 0:
		return ChildDumped
	}
	return ChildKilled
}
