// Package seal leaves a program that runs as a process the handful of the host's
// system calls that the Go runtime and the links need. The table in this file says
// which, from where, with what arguments and why; docs/seal.md is made from it.
//
// A call is let through if its number, its arguments and the instruction that makes it
// are in the table. The instruction counts where a descriptor is concerned: a write of
// the runtime's is the host's, and the same call in assembly that somebody brought along
// is the program's, whose descriptors are Loam's. All others trap: SIGSYS, which the edited runtime
// (unikernel/overlay/_std/runtime/loam_seal.go) turns into a call that Loam serves, or
// into ENOSYS.
//
// Two calls of the table make a new descriptor. recvmsg, of one socket only, receives the
// connections that the loam command hands over; fcntl copies these. So beside what was
// open when the seal was set, the standard streams, the links and the runtime's own, there
// are only connections that were accepted. That is why read and write need no test of
// their descriptor. What else may be done to a connection may be done to no other: they
// have numbers of their own, above all that was open. A connection that has ended must not
// become one to elsewhere, which sending with MSG_FASTOPEN could do.
//
// The filter has its own assembler (assemble.go); filter.go makes the program, and
// install.go hands it to the kernel, for every thread. See seccomp(2).
//
// Rejected: to test numbers alone. Then a write to descriptor 1 by assembly would reach
// the host, and one to a link's descriptor would be a frame. Rejected, too: an error
// in place of the trap, since the call could not be served then; and to forbid memory
// that can be executed: a program may have any code as it is, and some make theirs.
package seal

import (
	"slices"
	"syscall"
)

// A Call is a system call that is left. A number may stand in several.
type Call struct {
	Number uint32
	Name   string
	From   []string // the functions that may make it; nil: whoever
	If     []Test   // of its arguments, all of which must hold
	Why    string
}

// Gate makes the calls that are not in the runtime's assembly: what the program asks of
// package syscall and Loam leaves to the host, and what Loam asks for itself.
const Gate = "internal/runtime/syscall/linux.Syscall6"

// Kinds of tests.
const (
	Equal   = iota // the argument is one of Values
	Set            // it has all of the bits of Values[0]
	Self           // it is the number of this process, or one of Values
	Clear          // it has none of the bits of Values[0]
	Socket         // it is the socket by which connections are handed over
	Handed         // it is the descriptor of a connection that was handed over
	Below          // it is less than Values[0], as a number without a sign
	AtLeast        // it is not
	Unequal        // it is not Values[0]
)

// A Test looks at the lower 32 bits of an argument: the kernel takes these where it
// has an int, and in flags no others mean anything.
type Test struct {
	Arg    int // from 0
	Kind   int
	Values []uint32
	Text   string // the test, for people
}

// Calls and flags that package syscall does not name.
const (
	sysSendmmsg   = 307
	sysGetcpu     = 309
	sysGetrandom  = 318
	sysMembarrier = 324

	cloneThread = syscall.CLONE_VM | syscall.CLONE_FS | syscall.CLONE_FILES | syscall.CLONE_SIGHAND |
		syscall.CLONE_SYSVSEM | syscall.CLONE_THREAD

	msgFastOpen    = 0x20000000
	tcpUserTimeout = 18
	siocAtMark     = 0x8905
	fioNRead       = 0x541b

	firstOwn      = 3   // the least descriptor that is no standard stream
	madvHWPoison  = 100 // from here on advice is about the machine's memory (madvise(2))
	rlimitCore    = syscall.RLIMIT_CORE
	tcsetsf       = 0x5404
	tcgets2       = 0x802c542a
	tcsets2       = 0x402c542b
	prSetVMA      = 0x53564d41
	prSetName     = 15
	prGetName     = 16
	prGetKeepCaps = 7
	prSetKeepCaps = 8
)

var (
	toSelf    = Test{0, Self, nil, "to this process"}
	ofSelf    = Test{0, Self, []uint32{0}, "of this process"}
	ofCaller  = Test{0, Equal, []uint32{0}, "of the caller"}
	anonymous = Test{3, Set, []uint32{syscall.MAP_ANONYMOUS}, "no file"}
	newThread = Test{0, Equal, []uint32{cloneThread, cloneThread | syscall.CLONE_SETTLS}, "a thread"}
	standard  = Test{0, Below, []uint32{firstOwn}, "of a standard stream"}
	own       = Test{0, AtLeast, []uint32{firstOwn}, "of none of the standard streams"}
	advice    = Test{2, Below, []uint32{madvHWPoison}, "not MADV_HWPOISON or MADV_SOFT_OFFLINE"}
	notCore   = Test{0, Unequal, []uint32{rlimitCore}, "not RLIMIT_CORE"}
	notCoreOf = Test{1, Unequal, []uint32{rlimitCore}, "not RLIMIT_CORE"}
	names     = Test{0, Equal, []uint32{prSetVMA, prSetName, prGetName, prGetKeepCaps, prSetKeepCaps},
		"PR_SET_VMA, PR_SET_NAME, PR_GET_NAME, PR_SET_KEEPCAPS, PR_GET_KEEPCAPS"}
	bySocket      = Test{0, Socket, nil, "of the socket that hands connections over"}
	handed        = Test{0, Handed, nil, "of a connection that was handed over"}
	notFast       = Test{2, Clear, []uint32{msgFastOpen}, "to nobody new (MSG_FASTOPEN)"}
	notFastTo     = Test{3, Clear, []uint32{msgFastOpen}, "to nobody new (MSG_FASTOPEN)"}
	queued        = Test{1, Equal, []uint32{fioNRead, syscall.TIOCOUTQ, siocAtMark}, "FIONREAD, TIOCOUTQ, SIOCATMARK"}
	copied        = Test{1, Equal, []uint32{syscall.F_DUPFD_CLOEXEC, syscall.F_GETFL}, "F_DUPFD_CLOEXEC, F_GETFL"}
	ofSocket      = Test{1, Equal, []uint32{syscall.SOL_SOCKET}, "SOL_SOCKET"}
	ofTCP         = Test{1, Equal, []uint32{syscall.IPPROTO_TCP}, "IPPROTO_TCP"}
	ofIP          = Test{1, Equal, []uint32{syscall.IPPROTO_IP}, "IPPROTO_IP"}
	socketOptions = Test{2, Equal, []uint32{syscall.SO_KEEPALIVE, syscall.SO_LINGER, syscall.SO_SNDBUF, syscall.SO_RCVBUF, syscall.SO_OOBINLINE},
		"SO_KEEPALIVE, SO_LINGER, SO_SNDBUF, SO_RCVBUF, SO_OOBINLINE"}
	tcpOptions = Test{2, Equal, []uint32{syscall.TCP_NODELAY, syscall.TCP_CORK, syscall.TCP_KEEPIDLE, syscall.TCP_KEEPINTVL,
		syscall.TCP_KEEPCNT, syscall.TCP_QUICKACK, syscall.TCP_LINGER2, tcpUserTimeout},
		"TCP_NODELAY, TCP_CORK, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_QUICKACK, TCP_LINGER2, TCP_USER_TIMEOUT"}
	ipOptions   = Test{2, Equal, []uint32{syscall.IP_TOS, syscall.IP_TTL}, "IP_TOS, IP_TTL"}
	errorOption = Test{2, Equal, []uint32{syscall.SO_ERROR}, "SO_ERROR"}
	tcpAnswers  = Test{2, Equal, []uint32{syscall.TCP_INFO, syscall.TCP_MAXSEG, syscall.TCP_CONGESTION}, "TCP_INFO, TCP_MAXSEG, TCP_CONGESTION"}
	terminal    = Test{1, Equal, []uint32{
		syscall.TCGETS, syscall.TCSETS, syscall.TCSETS + 1, tcsetsf, tcgets2, tcsets2, tcsets2 + 1, tcsets2 + 2,
		syscall.TIOCGWINSZ, syscall.TIOCSWINSZ, syscall.TIOCGPGRP,
	}, "a terminal's modes and size, and which group has it"}
)

var gate = []string{Gate}

// runtimes are functions of package runtime.
func runtimes(names ...string) []string {
	for i := range names {
		names[i] = "runtime." + names[i]
	}
	return names
}

// Calls are all that are left. Those that are made most often come first: the filter
// goes from one to the next.
var Calls = slices.Concat(
	[]Call{
		anybody(syscall.SYS_FUTEX, "futex", "threads wait for one another"),
		{syscall.SYS_EPOLL_PWAIT, "epoll_pwait", gate, nil, "a thread without work waits for the links, connections and timers"},
		anybody(syscall.SYS_NANOSLEEP, "nanosleep", "the runtime's monitor pauses"),
		{syscall.SYS_SENDMSG, "sendmsg", gate, []Test{own, notFast}, "a link sends frames"},
		{syscall.SYS_READV, "readv", gate, []Test{own}, "a link receives frames"},
		{syscall.SYS_READ, "read", append(runtimes("read"), Gate), nil, "a link or a connection receives, standard input is read, a thread was woken"},
		{syscall.SYS_WRITE, "write", append(runtimes("write1"), Gate), nil, "a link or a connection sends, standard output is written, a thread is woken, a crash is told"},
		{syscall.SYS_TGKILL, "tgkill", append(runtimes("tgkill", "raise"), Gate), []Test{toSelf}, "a goroutine is preempted; a fatal signal ends the program"},
	},
	harmless,
	[]Call{
		{syscall.SYS_MMAP, "mmap", append(runtimes("sysMmap"), Gate), []Test{anonymous}, "memory"},
		{syscall.SYS_POLL, "poll", gate, nil, "a standard stream is waited for; is a connection ready?"},
		{syscall.SYS_PPOLL, "ppoll", gate, nil, "has a link room?"},
		{syscall.SYS_EPOLL_CTL, "epoll_ctl", gate, nil, "a link or a connection is waited for, or no more"},
		{syscall.SYS_CLOSE, "close", append(runtimes("closefd"), Gate), nil, "a link or a connection is closed"},
		{syscall.SYS_IOCTL, "ioctl", gate, []Test{standard, terminal}, "standard streams that are a terminal"},
		{syscall.SYS_PREAD64, "pread64", gate, []Test{own}, "how many processors the control group allows; /proc/self/maps"},
		{syscall.SYS_CLONE, "clone", runtimes("clone"), []Test{newThread}, "a thread starts"},
		{syscall.SYS_EXIT, "exit", append(runtimes("exitThread", "clone"), Gate), nil, "a thread ends"},
		{syscall.SYS_EXIT_GROUP, "exit_group", append(runtimes("exit"), Gate), nil, "the program ends"},
		{syscall.SYS_KILL, "kill", append(runtimes("raiseproc"), Gate), []Test{toSelf}, "a signal to the program itself"},
		{syscall.SYS_TIMER_CREATE, "timer_create", runtimes("timer_create"), nil, "CPU profiles; a goroutine goes on while another waits"},
		{syscall.SYS_TIMER_SETTIME, "timer_settime", runtimes("timer_settime"), nil, "CPU profiles; a goroutine goes on while another waits"},
		{syscall.SYS_TIMER_DELETE, "timer_delete", runtimes("timer_delete"), nil, "CPU profiles; a goroutine goes on while another waits"},
		{syscall.SYS_PRCTL, "prctl", nil, []Test{names}, "memory and threads have names"},
		{syscall.SYS_SCHED_GETAFFINITY, "sched_getaffinity", nil, []Test{ofSelf}, "how many processors there are"},
		{syscall.SYS_SCHED_SETAFFINITY, "sched_setaffinity", nil, []Test{ofCaller}, "which of them a thread uses"},
		{syscall.SYS_GETPGID, "getpgid", nil, []Test{ofSelf}, who},
		{syscall.SYS_GETSID, "getsid", nil, []Test{ofSelf}, who},
		{syscall.SYS_PRLIMIT64, "prlimit64", nil, []Test{ofSelf, notCoreOf}, bounds},
		{syscall.SYS_GETPRIORITY, "getpriority", nil, []Test{{1, Self, []uint32{0}, "of this process"}}, bounds},
	},
	ofConnections,
)

// ofConnections are calls about connections that are handed over: none may be made where
// there are none (Process).
var ofConnections = []Call{
	{syscall.SYS_RECVMSG, "recvmsg", gate, []Test{bySocket}, "a connection is handed over"},
	{syscall.SYS_SETSOCKOPT, "setsockopt", gate, []Test{handed, ofTCP, tcpOptions}, options},
	{syscall.SYS_SETSOCKOPT, "setsockopt", gate, []Test{handed, ofSocket, socketOptions}, options},
	{syscall.SYS_SETSOCKOPT, "setsockopt", gate, []Test{handed, ofIP, ipOptions}, options},
	{syscall.SYS_GETSOCKOPT, "getsockopt", gate, []Test{handed, ofSocket, errorOption}, options},
	{syscall.SYS_GETSOCKOPT, "getsockopt", gate, []Test{handed, ofTCP, tcpAnswers}, options},
	{syscall.SYS_GETSOCKOPT, "getsockopt", gate, []Test{handed, ofTCP, tcpOptions}, options},
	{syscall.SYS_GETSOCKOPT, "getsockopt", gate, []Test{handed, ofSocket, socketOptions}, options},
	{syscall.SYS_GETSOCKOPT, "getsockopt", gate, []Test{handed, ofIP, ipOptions}, options},
	{syscall.SYS_SHUTDOWN, "shutdown", gate, []Test{handed}, "a connection is half closed"},
	{syscall.SYS_RECVFROM, "recvfrom", gate, []Test{handed}, "a connection receives, with flags"},
	{syscall.SYS_SENDTO, "sendto", gate, []Test{handed, notFastTo}, "a connection sends, with flags"},
	{syscall.SYS_IOCTL, "ioctl", gate, []Test{handed, queued}, "what has a connection yet to send, or to be read?"},
	{syscall.SYS_FCNTL, "fcntl", gate, []Test{handed, copied}, "a connection is waited for twice"},
}

// Why, of more than one.
const (
	memory  = "the program's own memory"
	threads = "its threads"
	signals = "its signals"
	clocks  = "time"
	who     = "who it is"
	bounds  = "what it may use"
	options = "options of a connection"
)

// anybody is a call that may be made from anywhere.
func anybody(number uint32, name, why string) Call {
	return Call{Number: number, Name: name, Why: why}
}

// harmless are calls about nothing but the calling process, without descriptor or path.
var harmless = []Call{
	anybody(syscall.SYS_RT_SIGRETURN, "rt_sigreturn", signals),
	anybody(syscall.SYS_RT_SIGPROCMASK, "rt_sigprocmask", signals),
	{syscall.SYS_MADVISE, "madvise", nil, []Test{advice}, memory},
	anybody(syscall.SYS_MUNMAP, "munmap", memory),
	anybody(syscall.SYS_SCHED_YIELD, "sched_yield", threads),
	anybody(syscall.SYS_CLOCK_GETTIME, "clock_gettime", clocks),
	anybody(syscall.SYS_GETTID, "gettid", threads),
	anybody(syscall.SYS_GETPID, "getpid", who),
	anybody(syscall.SYS_SIGALTSTACK, "sigaltstack", signals),
	anybody(syscall.SYS_RT_SIGACTION, "rt_sigaction", signals),
	anybody(syscall.SYS_RT_SIGTIMEDWAIT, "rt_sigtimedwait", signals),
	anybody(syscall.SYS_PAUSE, "pause", signals),
	anybody(syscall.SYS_MPROTECT, "mprotect", memory),
	anybody(syscall.SYS_MREMAP, "mremap", memory),
	anybody(syscall.SYS_MSYNC, "msync", memory),
	anybody(syscall.SYS_MINCORE, "mincore", memory),
	anybody(syscall.SYS_MLOCK, "mlock", memory),
	anybody(syscall.SYS_MUNLOCK, "munlock", memory),
	anybody(syscall.SYS_MLOCKALL, "mlockall", memory),
	anybody(syscall.SYS_MUNLOCKALL, "munlockall", memory),
	anybody(sysGetcpu, "getcpu", threads),
	anybody(syscall.SYS_ARCH_PRCTL, "arch_prctl", threads),
	anybody(sysMembarrier, "membarrier", threads),
	anybody(syscall.SYS_RESTART_SYSCALL, "restart_syscall", "made by the kernel, for a wait that a stop has interrupted"),
	anybody(syscall.SYS_CLOCK_GETRES, "clock_getres", clocks),
	anybody(syscall.SYS_CLOCK_NANOSLEEP, "clock_nanosleep", clocks),
	anybody(syscall.SYS_GETTIMEOFDAY, "gettimeofday", clocks),
	anybody(syscall.SYS_TIME, "time", clocks),
	anybody(syscall.SYS_TIMES, "times", clocks),
	anybody(syscall.SYS_GETITIMER, "getitimer", clocks),
	anybody(syscall.SYS_SETITIMER, "setitimer", "CPU profiles"),
	anybody(syscall.SYS_ALARM, "alarm", clocks),
	anybody(syscall.SYS_GETPPID, "getppid", who),
	anybody(syscall.SYS_GETPGRP, "getpgrp", who),
	anybody(syscall.SYS_GETUID, "getuid", who),
	anybody(syscall.SYS_GETEUID, "geteuid", who),
	anybody(syscall.SYS_GETGID, "getgid", who),
	anybody(syscall.SYS_GETEGID, "getegid", who),
	anybody(syscall.SYS_GETGROUPS, "getgroups", who),
	anybody(syscall.SYS_GETRESUID, "getresuid", who),
	anybody(syscall.SYS_GETRESGID, "getresgid", who),
	anybody(syscall.SYS_GETRUSAGE, "getrusage", bounds),
	anybody(syscall.SYS_GETRLIMIT, "getrlimit", bounds),
	{syscall.SYS_SETRLIMIT, "setrlimit", nil, []Test{notCore}, bounds},
	anybody(syscall.SYS_SYSINFO, "sysinfo", bounds),
	anybody(sysGetrandom, "getrandom", "randomness"),
}
