// Package rt connects a Go program to Loam. It is linked into every program built for Loam. It also lists
// every function through which Loam and the edited standard library (unikernel/overlay) call each other.
//
// The standard library calls these functions of Loam:
//
//	call              serves a system call (call.go)
//	read              serves read(2) without the table of calls, since programs call it most (transfer.go)
//	write             serves write(2) in the same way (transfer.go)
//	immediate         returns a handle of a file whose reads and writes never block (transfer.go)
//	readFrom          reads from such a file (transfer.go)
//	writeTo           writes to such a file (transfer.go)
//	readAt            reads from such a file at an offset (transfer.go)
//	writeAt           writes to such a file at an offset (transfer.go)
//	pollOpen          attaches a poll descriptor of the runtime to a file (poll.go)
//	pollClose         detaches it (poll.go)
//
// Loam calls or sets these functions and variables of the runtime and of package syscall:
//
//	pollReady         readies the goroutines that wait for a file (poll.go)
//	resumed           wakes a thread for goroutines that pollReady left to a stack loop's thread (poll.go)
//	stackBounds       returns the bounds of the goroutine's stack (call.go)
//	onStack           reports whether an address is on the goroutine's stack (memory.go)
//	install           installs call: from then on package syscall sends system calls to Loam (start.go)
//	serving           makes the runtime's poller treat file descriptors as Loam's (start.go)
//	addExitHook       registers a function to call when the program exits (start.go)
//	crash             is called before a panic ends the program (ending.go)
//	handled           reports whether the program receives a signal by package os/signal (ending.go)
//	leaveBubble       removes the goroutine from its testing/synctest bubble (start.go)
//	enterBubble       puts it back (start.go)
//	correctBuildInfo  sets the function that removes Loam's traces from the build information (buildinfo.go)
//	beginTraps        enables the serving of trapped system calls (trap.go)
//	nextTrap          waits for a trapped system call (trap.go)
//	trapCall          returns its number and arguments (trap.go)
//	trapReturn        makes it return (trap.go)
//	enterWith         combines leaveBubble and onStack (transfer.go)
//	spawnProgram      starts a process in ring 3 for os/exec; only in programs that start others (children)
//	hostCall          makes a system call of the host, bypassing Loam (host.go)
//	hostRead          reads from a file of the host (transfer.go)
//	hostWrite         writes to a file of the host (transfer.go)
//
// The runtime initialises this package and its imports before all other packages, so sockets work while the
// program's own packages are initialised.
//
// # Memory
//
// The arguments of a system call are uintptrs; the table of calls says which of them are addresses. An
// address on the goroutine's own stack would become stale when the stack moves. call.go therefore encodes
// it as an offset from the end of the stack before anything can move the stack. goMemory (memory.go)
// decodes it wherever the stack lies by then. Other addresses are passed unchanged: the heap does not move,
// and the caller keeps its arguments' memory alive.
//
// Byte buffers on a stack are replaced by heap buffers for the duration of the call, so the code below the
// table (package posix, the stack) sees ordinary memory. Only files that are fs.Immediate receive the
// program's own buffer.
package rt
