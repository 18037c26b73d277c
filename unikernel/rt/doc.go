// Package rt joins a program to Loam. It is linked into every program that is
// built to run on Loam, and it is the complete list of what the edited standard
// library (unikernel/overlay) asks of Loam:
//
//	call              serves a system call (call.go)
//	read              serves the most frequent one without a look into tables (transfer.go)
//	write             likewise (transfer.go)
//	immediate         names a file that keeps nobody waiting (transfer.go)
//	readFrom          reads from such a file (transfer.go)
//	writeTo           writes to one (transfer.go)
//	readAt            reads from one at an offset (transfer.go)
//	writeAt           writes to one at an offset (transfer.go)
//	pollOpen          ties a poll descriptor of the runtime to a file (poll.go)
//	pollClose         unties it (poll.go)
//
// and of what Loam asks of the runtime and of package syscall in return:
//
//	pollReady         readies the goroutines that wait for a file (poll.go)
//	resumed           says that a loop of the stack goes on, for what pollReady left to its thread (poll.go)
//	onStack           says whether an address is on the goroutine's stack (memory.go)
//	serve             opens the door: from now on call is asked (start.go)
//	serving           has the poller know that descriptors are Loam's (start.go)
//	addExitHook       has a function called when the program ends (start.go)
//	leaveBubble       takes the goroutine out of a bubble of testing/synctest (start.go)
//	enterBubble       takes it back (start.go)
//	correctBuildInfo  has the program read about itself what it would without Loam (buildinfo.go)
//	beginTraps        says that system calls that trap will be served (trap.go)
//	nextTrap          waits for one (trap.go)
//	trapCall          says what it asks for (trap.go)
//	trapReturn        has it return (trap.go)
//	enterWith         leaveBubble and onStack in one (transfer.go)
//	hostCall          makes a system call of the host's past the door (host.go)
//	hostRead          reads from a file of the host's (transfer.go)
//	hostWrite         writes to one (transfer.go)
//	pollInit          opens what the poller of the runtime needs, before the seal (process/process.go)
//	callPlaces        tells where the runtime makes system calls (process/process.go)
//
// The runtime initialises this package, and those that it imports, before all
// others, so sockets work in the initialisation of the program's packages.
//
// # Memory
//
// The arguments of a system call are uintptrs, some of them addresses. call.go
// turns those into unsafe.Pointer before anything can move the stack that they
// may point into; from there on they are held as pointers, never as numbers, in
// variables of goroutine stacks, never in the heap. Byte buffers that lie on a
// stack are replaced by buffers of the heap for the time of the call, so what is
// below the decoders (package posix, the stack) sees ordinary memory. Only files that are
// fs.Immediate are given the program's own.
package rt
