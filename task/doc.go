// Package task runs Linux programs: their processes and threads, from the first instruction to the last. It connects
// the packages that decide and do not wait (mem, exec, task/signal, task/futex, task/family) with the packages that
// implement Linux's system calls (posix, posix/call).
//
//	System   all processes, futexes, and the files that are mapped
//	Process  what the threads of a process share: memory, signals, descriptors, limits
//	Task     one thread: a goroutine that runs the thread in ring 3, serves what it asks for, and repeats
//	Host     a program in ring 0 as process 1, which spawns processes
//	Machine  what runs threads: package kernel/user in a virtual machine, a script in tests
//
// Read task.go (the loop of a thread), calls.go (the tables of calls), then the rest by topic. Families of calls that need little of a
// task are packages that get it as an interface, which callTask implements (callers.go): futexcall, ipc, privilege, rseq, schedule,
// seccomp and wait. Package trace has debuggers.
//
// # Calls
//
// A call is looked up in this package's table (memory, processes, signals, futexes, time), and then in posix/call. Both
// access the memory of the process only by call.Memory.
//
// # Waiting
//
// A thread that waits is a parked goroutine. Every wait ends by its event, its timeout, or the interrupt channel of the
// task. alert sends to that channel and kicks the thread out of ring 3; the task then looks at its signals. Whether a
// call that ends with EINTR is made again depends on the call and on the handler (signal(7)).
//
// # Locks
//
// System.mu guards the tree of processes, the dispositions of signals and the pending signals, and the lists of tasks. It is
// not held while a page is loaded or a thread waits. Calls that need none of these take no lock of this package: a thread
// changes its own signal mask without a lock (package signal). Futexes have locks of their own (futexcall/bucket.go).
// Order: locks of futexes < System.mu < mem.Map.
//
// # Rejected
//
//   - A goroutine that owns all processes and receives requests: a call that sets a signal mask would cost
//     two switches between goroutines.
//   - A lock per process for its signals. Sending a signal to a group, waiting for children and the end of a process touch
//     several processes; one lock makes these steps atomic. To be reconsidered if a profile shows that threads
//     wait for the lock.
package task
