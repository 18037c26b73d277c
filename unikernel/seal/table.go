// Package seal leaves a program that runs as a process the handful of the host's
// system calls that the Go runtime and the links need. The table in this file says
// which, from where, with what arguments and why; docs/seal.md is made from it.
//
// A call is let through if its number, the instruction that makes it and its
// arguments are in the table. The instruction counts since the calls that the
// runtime needs are those that a program could use, too: futex, write and mmap of
// the runtime are the host's, the same calls in assembly that somebody brought along
// are not. All others trap: SIGSYS, which the edited runtime
// (unikernel/overlay/_std/runtime/loam_seal.go) turns into a call that Loam serves, or
// into ENOSYS.
//
// No call of the table makes a new descriptor, so those that were open when the seal
// was set are all that there will ever be: the standard streams, the links, and the
// runtime's own. That is why read and write need no test of their descriptor.
//
// The filter has its own assembler (assemble.go); filter.go makes the program, and
// install.go hands it to the kernel, for every thread. See seccomp(2).
//
// Rejected: to test numbers alone. Then a write to descriptor 1 by assembly would reach
// the host, and one to a link's descriptor would be a frame. Rejected, too: an error
// in place of the trap, since the call could not be served then.
package seal

import "syscall"

// A Call is a system call that is left. A number may stand in several.
type Call struct {
	Number uint32
	Name   string
	From   []string // the functions that may make it; Gate and VDSO among them
	If     []Test   // of its arguments, all of which must hold
	Why    string
}

// Where calls come from, besides functions of the runtime.
const (
	Gate = "internal/runtime/syscall/linux.Syscall6" // what is not in the runtime's assembly, and what links do
	VDSO = "vdso"                                    // code of the kernel's own (vdso(7))
)

// Kinds of tests.
const (
	Equal = iota // the argument is one of Values
	Clear        // it has none of the bits of Values[0]
	Set          // it has all of them
	Self         // it is the number of this process
)

// A Test looks at the lower 32 bits of an argument: the kernel takes these where it
// has an int, and in flags no others mean anything.
type Test struct {
	Arg    int // from 0
	Kind   int
	Values []uint32
	Text   string // the test, for people
}

// Calls that package syscall does not name.
const (
	sysSendmmsg  = 307
	sysGetrandom = 318
	sysGetcpu    = 309
)

// Flags.
const (
	cloneThread = syscall.CLONE_VM | syscall.CLONE_FS | syscall.CLONE_FILES | syscall.CLONE_SIGHAND |
		syscall.CLONE_SYSVSEM | syscall.CLONE_THREAD
	prSetVMA = 0x53564d41 // PR_SET_VMA
)

var (
	toSelf      = Test{0, Self, nil, "to this process"}
	noExec      = Test{2, Clear, []uint32{syscall.PROT_EXEC}, "not executable"}
	anonymous   = Test{3, Set, []uint32{syscall.MAP_ANONYMOUS}, "no file"}
	newThread   = Test{0, Equal, []uint32{cloneThread, cloneThread | syscall.CLONE_SETTLS}, "a thread"}
	nameMemory  = Test{0, Equal, []uint32{prSetVMA}, "PR_SET_VMA"}
	thisProcess = Test{0, Equal, []uint32{0}, "of the caller"}
)

func runtimes(names ...string) []string {
	for i := range names {
		names[i] = "runtime." + names[i]
	}
	return names
}

var gate = []string{Gate}

// Calls are all that are left. Those that are made most often come first: the filter
// goes from one to the next.
var Calls = []Call{
	{syscall.SYS_FUTEX, "futex", runtimes("futex"), nil, "threads wait for one another"},
	{syscall.SYS_EPOLL_PWAIT, "epoll_pwait", gate, nil, "a thread without work waits for the links, the standard streams and timers"},
	{syscall.SYS_NANOSLEEP, "nanosleep", runtimes("usleep"), nil, "the runtime's monitor pauses"},
	{syscall.SYS_SENDMSG, "sendmsg", gate, nil, "a link sends frames"},
	{syscall.SYS_RECVMSG, "recvmsg", gate, nil, "a link receives frames"},
	{sysSendmmsg, "sendmmsg", gate, nil, "a link sends frames"},
	{syscall.SYS_RECVMMSG, "recvmmsg", gate, nil, "a link receives frames"},
	{syscall.SYS_READ, "read", append(runtimes("read"), Gate), nil, "a link receives, standard input is read, a thread was woken"},
	{syscall.SYS_WRITE, "write", append(runtimes("write1"), Gate), nil, "a link sends, standard output is written, a thread is woken, a crash is told"},
	{syscall.SYS_READV, "readv", gate, nil, "a link receives frames"},
	{syscall.SYS_WRITEV, "writev", gate, nil, "a link sends frames"},
	{syscall.SYS_CLOCK_GETTIME, "clock_gettime", append(runtimes("nanotime1"), "time.now", VDSO), nil, "the time, where the kernel's page does not tell it"},
	{syscall.SYS_TGKILL, "tgkill", runtimes("tgkill", "raise"), []Test{toSelf}, "a goroutine is preempted; a fatal signal ends the program"},
	{syscall.SYS_RT_SIGRETURN, "rt_sigreturn", runtimes("sigreturn__sigaction"), nil, "the end of a signal handler"},
	{syscall.SYS_RT_SIGPROCMASK, "rt_sigprocmask", runtimes("rtsigprocmask"), nil, "threads start and end without signals"},
	{syscall.SYS_MADVISE, "madvise", runtimes("madvise"), nil, "free memory goes back"},
	{syscall.SYS_MMAP, "mmap", runtimes("sysMmap"), []Test{noExec, anonymous}, "memory"},
	{syscall.SYS_MUNMAP, "munmap", runtimes("sysMunmap"), nil, "memory is given back"},
	{syscall.SYS_SCHED_YIELD, "sched_yield", runtimes("osyield"), nil, "a lock is held for a moment"},
	{syscall.SYS_POLL, "poll", gate, nil, "is a standard stream ready?"},
	{syscall.SYS_PPOLL, "ppoll", gate, nil, "has a link room?"},
	{syscall.SYS_EPOLL_CTL, "epoll_ctl", gate, nil, "a descriptor is waited for, or no more"},
	{syscall.SYS_CLOSE, "close", append(runtimes("closefd"), Gate), nil, "a link is closed"},
	{syscall.SYS_CLONE, "clone", runtimes("clone"), []Test{newThread}, "a thread starts"},
	{syscall.SYS_EXIT, "exit", runtimes("exitThread", "clone"), nil, "a thread ends"},
	{syscall.SYS_EXIT_GROUP, "exit_group", append(runtimes("exit"), Gate), nil, "the program ends"},
	{syscall.SYS_RESTART_SYSCALL, "restart_syscall", append(runtimes("futex", "usleep"), Gate, VDSO), nil, "made by the kernel, in place of a wait that a stop has interrupted"},
	{syscall.SYS_SIGALTSTACK, "sigaltstack", runtimes("sigaltstack"), nil, "each thread has a stack for signals"},
	{syscall.SYS_RT_SIGACTION, "rt_sigaction", runtimes("rt_sigaction"), nil, "signals are caught, or no more"},
	{syscall.SYS_GETTID, "gettid", runtimes("gettid", "raise", "clone"), nil, "a thread learns its number"},
	{syscall.SYS_GETPID, "getpid", runtimes("getpid", "raise", "raiseproc"), nil, "signals to this process need its number"},
	{syscall.SYS_KILL, "kill", runtimes("raiseproc"), []Test{toSelf}, "a fatal signal ends the program"},
	{syscall.SYS_SETITIMER, "setitimer", runtimes("setitimer"), nil, "CPU profiles"},
	{syscall.SYS_TIMER_CREATE, "timer_create", runtimes("timer_create"), nil, "CPU profiles"},
	{syscall.SYS_TIMER_SETTIME, "timer_settime", runtimes("timer_settime"), nil, "CPU profiles"},
	{syscall.SYS_TIMER_DELETE, "timer_delete", runtimes("timer_delete"), nil, "CPU profiles"},
	{syscall.SYS_SCHED_GETAFFINITY, "sched_getaffinity", runtimes("sched_getaffinity"), []Test{thisProcess}, "how many processors there are"},
	{syscall.SYS_PREAD64, "pread64", gate, nil, "how many processors the control group allows"},
	{syscall.SYS_PRCTL, "prctl", gate, []Test{nameMemory}, "the runtime names its memory"},
	{syscall.SYS_GETTIMEOFDAY, "gettimeofday", []string{VDSO}, nil, "the time, where the kernel's page does not tell it"},
	{sysGetcpu, "getcpu", []string{VDSO}, nil, "which processor this is"},
	{sysGetrandom, "getrandom", []string{VDSO}, nil, "the seed of the kernel's generator in the program's memory"},
}
