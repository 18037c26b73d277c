package file

// Watched is a process that can be named by a pidfd.
type Watched interface {
	PID() int
	// Ended reports whether the process has ended. Ends returns the queue whose watches are notified at the end.
	Ended() bool
	Ends() *Queue
}
