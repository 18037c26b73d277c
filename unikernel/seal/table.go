// Package seal lists the system calls of the host that a confined process may make, and generates the seccomp
// filter that blocks all others. The table in this file gives for each call its callers, its arguments and its
// purpose; docs/seal.md is generated from it. Package sandbox installs the filter before the program's first
// instruction.
//
// A call is allowed if its number, its arguments and the address of its instruction are in the table. The
// address matters where descriptors are involved: a write by the runtime goes to the host; a write by other
// assembly is the program's, whose descriptors are Loam's. All other calls trap. The edited runtime
// (unikernel/overlay/_std/runtime/loam_trap.go) turns SIGSYS into a call that Loam serves, or into ENOSYS. The
// address is no protection, because code can jump to it. The protection is the number and the arguments.
//
// Four calls of the table create a descriptor. recvmsg, on one socket only, receives the connections that the
// loam command hands over, and fcntl copies them. epoll_create1 and eventfd2 create the descriptors of the
// runtime's poller, which reach nothing outside. So in addition to the descriptors at the start, a process has
// only accepted connections, and read needs no check of its descriptor. A closed connection must not
// become a connection to another host, which sending with MSG_FASTOPEN could do. A disk image must not grow: pwrite64
// writes only within its size. write uses a file position that the filter cannot see, so it cannot write an image. The
// only files that can be mapped for writing are those that package fs/ninep/ring uses, whose size is sealed.
//
// assemble.go is an assembler for the filter, filter.go generates its program, and places.go finds the
// instructions in the linked file. See seccomp(2).
//
// Rejected:
//
//   - Checking numbers only. Then a write to descriptor 1 by assembly would reach the host, and a write to a
//     link's descriptor would be a frame.
//   - An error instead of the trap: Loam could not serve the call.
//   - Forbidding executable memory: a program may contain any code already, and some programs generate code.
package seal

import (
	"slices"

	"loam/abi/linux"
)

// A Call is an allowed system call. Several rows may have the same number.
type Call struct {
	Number uint32
	Name   string
	From   []string // functions that may make the system call; nil: any function
	If     []Test   // tests of the arguments, all of which must pass
	Why    string
	Do     Action // action for a call that matches the row
}

// Action is the treatment of a call that matches a row of the table.
type Action int

const (
	Allow   Action = iota
	Absent         // the call returns ENOENT
	Invalid        // the call returns EINVAL
	Notify         // package sandbox answers the call, but only the first time
)

// result returns the action as the return value of a filter (seccomp(2)).
func (a Action) result() uint32 {
	switch a {
	case Absent:
		return retErrno | uint32(linux.ENOENT)
	case Invalid:
		return retErrno | uint32(linux.EINVAL)
	case Notify:
		return retNotify
	}
	return retAllow
}

// Gate is the function that makes calls that are not in the runtime's assembly: calls of package
// syscall that Loam passes to the host, and Loam's own calls.
const Gate = "internal/runtime/syscall/linux.Syscall6"

// Values of Test.Kind: what an argument of a call is compared with.
const (
	Equal   = iota // the argument equals one of Values
	Set            // the argument has all bits of Values[0]
	Self           // the argument is the ID of this process, or one of Values
	Clear          // the argument has no bit of Values[0]
	Socket         // the argument is the descriptor of the socket for handed-over connections
	Handed         // the argument is the descriptor of a handed-over connection
	Disk           // the argument is the descriptor of a disk image
	NoDisk         // the argument is not the descriptor of a disk image
	Memory         // the argument is the descriptor of memory that is shared with the server of a folder
	Within         // the argument and the next one are a number of bytes and a position, which end within the disk image
	Below          // the argument is less than Values[0], as an unsigned number
	AtLeast        // the argument is at least Values[0], as an unsigned number
	Unequal        // the argument does not equal Values[0]
)

// A Test checks the lower 32 bits of an argument. The kernel uses only these for an argument of type
// int, and flags have no meaning in the other bits.
type Test struct {
	Arg    int // number of the argument, from 0
	Kind   int
	Values []uint32
	Text   string // description of the test, for docs/seal.md
}

const (
	cloneThread = linux.CLONE_VM | linux.CLONE_FS | linux.CLONE_FILES | linux.CLONE_SIGHAND |
		linux.CLONE_SYSVSEM | linux.CLONE_THREAD

	firstOwn = 3 // the lowest descriptor after the standard streams
)

var (
	toSelf    = Test{0, Self, nil, "the target is this process"}
	ofSelf    = Test{0, Self, []uint32{0}, "the argument is this process"}
	ofCaller  = Test{0, Equal, []uint32{0}, "the argument is the calling thread"}
	anonymous = Test{3, Set, []uint32{linux.MAP_ANONYMOUS}, "the mapping has no file"}
	newThread = Test{0, Equal, []uint32{cloneThread, cloneThread | linux.CLONE_SETTLS}, "the flags create a thread"}
	standard  = Test{0, Below, []uint32{firstOwn}, "the descriptor is a standard stream"}
	own       = Test{0, AtLeast, []uint32{firstOwn}, "the descriptor is not a standard stream"}
	advice    = Test{2, Below, []uint32{linux.MADV_HWPOISON}, "the advice is neither MADV_HWPOISON nor MADV_SOFT_OFFLINE"}
	notCore   = Test{0, Unequal, []uint32{linux.RLIMIT_CORE}, "the resource is not RLIMIT_CORE"}
	notCoreOf = Test{1, Unequal, []uint32{linux.RLIMIT_CORE}, "the resource is not RLIMIT_CORE"}
	names     = Test{0, Equal, []uint32{linux.PR_SET_VMA, linux.PR_SET_NAME, linux.PR_GET_NAME, linux.PR_GET_KEEPCAPS, linux.PR_SET_KEEPCAPS},
		"the operation is PR_SET_VMA, PR_SET_NAME, PR_GET_NAME, PR_SET_KEEPCAPS or PR_GET_KEEPCAPS"}
	// CPU clocks of other processes, and clocks of devices, have negative numbers (clock_getres(2)).
	ofClock   = Test{0, Below, []uint32{16}, "the clock is a system clock, or a CPU clock of the caller"}
	ofOwnTime = Test{0, Equal, []uint32{0xfffffff8, 0xfffffff9, 0xfffffffa, 0xfffffffc, 0xfffffffd, 0xfffffffe}, "the clock is a CPU clock of the caller"}

	bySocket      = Test{0, Socket, nil, "the descriptor is the socket for handing over connections"}
	handed        = Test{0, Handed, nil, "the descriptor is a connection that was handed over"}
	ofDisk        = Test{0, Disk, nil, "the descriptor is a disk image"}
	noDisk        = Test{0, NoDisk, nil, "the descriptor is not a disk image"}
	ofMemory      = Test{4, Memory, nil, "the descriptor is memory that is shared with the server of a folder"}
	shared        = Test{3, Equal, []uint32{linux.MAP_SHARED}, "the mapping is shared"}
	readWrite     = Test{2, Equal, []uint32{linux.PROT_READ | linux.PROT_WRITE}, "the protection is PROT_READ and PROT_WRITE"}
	withinDisk    = Test{2, Within, nil, "the written range is within the size of the image"}
	notFast       = Test{2, Clear, []uint32{linux.MSG_FASTOPEN}, "the flags do not include MSG_FASTOPEN"}
	notFastTo     = Test{3, Clear, []uint32{linux.MSG_FASTOPEN}, "the flags do not include MSG_FASTOPEN"}
	queued        = Test{1, Equal, []uint32{linux.FIONREAD, linux.TIOCOUTQ, linux.SIOCATMARK}, "the request is FIONREAD, TIOCOUTQ or SIOCATMARK"}
	copied        = Test{1, Equal, []uint32{linux.F_DUPFD_CLOEXEC, linux.F_GETFL}, "the command is F_DUPFD_CLOEXEC or F_GETFL"}
	ofSocket      = Test{1, Equal, []uint32{linux.SOL_SOCKET}, "the level is SOL_SOCKET"}
	ofTCP         = Test{1, Equal, []uint32{linux.IPPROTO_TCP}, "the level is IPPROTO_TCP"}
	ofIP          = Test{1, Equal, []uint32{linux.IPPROTO_IP}, "the level is IPPROTO_IP"}
	socketOptions = Test{2, Equal, []uint32{linux.SO_KEEPALIVE, linux.SO_LINGER, linux.SO_SNDBUF, linux.SO_RCVBUF, linux.SO_OOBINLINE},
		"the option is SO_KEEPALIVE, SO_LINGER, SO_SNDBUF, SO_RCVBUF or SO_OOBINLINE"}
	tcpOptions = Test{2, Equal, []uint32{linux.TCP_NODELAY, linux.TCP_CORK, linux.TCP_KEEPIDLE, linux.TCP_KEEPINTVL,
		linux.TCP_KEEPCNT, linux.TCP_QUICKACK, linux.TCP_LINGER2, linux.TCP_USER_TIMEOUT},
		"the option is TCP_NODELAY, TCP_CORK, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_QUICKACK, TCP_LINGER2 or TCP_USER_TIMEOUT"}
	ipOptions   = Test{2, Equal, []uint32{linux.IP_TOS, linux.IP_TTL}, "the option is IP_TOS or IP_TTL"}
	errorOption = Test{2, Equal, []uint32{linux.SO_ERROR}, "the option is SO_ERROR"}
	tcpAnswers  = Test{2, Equal, []uint32{linux.TCP_INFO, linux.TCP_MAXSEG, linux.TCP_CONGESTION}, "the option is TCP_INFO, TCP_MAXSEG or TCP_CONGESTION"}
	terminal    = Test{1, Equal, []uint32{
		linux.TCGETS, linux.TCSETS, linux.TCSETS + 1, linux.TCSETSF, linux.TCGETS2, linux.TCSETS2, linux.TCSETS2 + 1, linux.TCSETS2 + 2,
		linux.TIOCGWINSZ, linux.TIOCSWINSZ, linux.TIOCGPGRP,
	}, "the request concerns a terminal's settings, size or foreground group"}
)

var gate = []string{Gate}

// runtimes returns the names of functions of package runtime, with the package's name.
func runtimes(names ...string) []string {
	for i := range names {
		names[i] = "runtime." + names[i]
	}
	return names
}

// Calls lists all allowed calls, with the most frequent ones first, because the filter checks them in this order.
var Calls = slices.Concat(
	[]Call{
		fromAnywhere(linux.SYS_FUTEX, "futex", "makes threads wait for each other, and wakes them"),
		{Number: linux.SYS_EPOLL_PWAIT, Name: "epoll_pwait", From: gate, Why: "an idle thread waits for links, connections and timers"},
		fromAnywhere(linux.SYS_NANOSLEEP, "nanosleep", "the runtime's monitor pauses"),
		{Number: linux.SYS_SENDMSG, Name: "sendmsg", From: gate, If: []Test{own, notFast}, Why: "a link sends frames"},
		{Number: linux.SYS_READV, Name: "readv", From: gate, If: []Test{own}, Why: "a link receives frames"},
		{Number: linux.SYS_READ, Name: "read", From: append(runtimes("read"), Gate), Why: "receives from a link or a connection; reads standard input; lets a thread notice that it was woken"},
		{Number: linux.SYS_WRITE, Name: "write", From: append(runtimes("write1"), Gate), If: []Test{noDisk}, Why: "sends to a link or a connection; writes standard output or the report of a crash; wakes a thread"},
		{Number: linux.SYS_TGKILL, Name: "tgkill", From: append(runtimes("tgkill", "raise"), Gate), If: []Test{toSelf}, Why: "preempts a goroutine; ends the program with a fatal signal"},
	},
	harmless,
	starting,
	[]Call{
		{Number: linux.SYS_MMAP, Name: "mmap", From: append(runtimes("sysMmap"), Gate), If: []Test{anonymous}, Why: "allocates memory"},
		{Number: linux.SYS_POLL, Name: "poll", From: gate, Why: "the program waits for a standard stream or the server of a folder, or checks whether a connection is ready"},
		{Number: linux.SYS_PPOLL, Name: "ppoll", From: gate, Why: "waits until a link has room"},
		{Number: linux.SYS_EPOLL_CTL, Name: "epoll_ctl", From: gate, Why: "a link or a connection is added to the poller, or removed"},
		{Number: linux.SYS_CLOSE, Name: "close", From: append(runtimes("closefd"), Gate), Why: "a link or a connection is closed"},
		{Number: linux.SYS_IOCTL, Name: "ioctl", From: gate, If: []Test{standard, terminal}, Why: "the program uses a standard stream that is a terminal"},
		{Number: linux.SYS_PREAD64, Name: "pread64", From: gate, If: []Test{own}, Why: "reads the processor limit of the control group, /proc/self/maps, and blocks of a disk image"},
		{Number: linux.SYS_PWRITE64, Name: "pwrite64", From: gate, If: []Test{ofDisk, withinDisk}, Why: "blocks of a disk image are written"},
		{Number: linux.SYS_FDATASYNC, Name: "fdatasync", From: gate, If: []Test{ofDisk}, Why: "writes to a disk image are made durable"},
		{Number: linux.SYS_CLONE, Name: "clone", From: runtimes("clone"), If: []Test{newThread}, Why: "a thread starts"},
		{Number: linux.SYS_EXIT, Name: "exit", From: append(runtimes("exitThread", "clone"), Gate), Why: "a thread ends"},
		{Number: linux.SYS_EXIT_GROUP, Name: "exit_group", From: append(runtimes("exit"), Gate), Why: "the program ends"},
		{Number: linux.SYS_RT_SIGQUEUEINFO, Name: "rt_sigqueueinfo", If: []Test{toSelf}, Why: "sends a signal to the program itself"},
		{Number: linux.SYS_KILL, Name: "kill", From: append(runtimes("raiseproc"), Gate), If: []Test{toSelf}, Why: "sends a signal to the program itself"},
		{Number: linux.SYS_TIMER_CREATE, Name: "timer_create", From: append(runtimes("timer_create"), Gate), If: []Test{ofClock}, Why: "runs timers for CPU profiles, and for deferred wakes of goroutines (decision 24)"},
		{Number: linux.SYS_TIMER_CREATE, Name: "timer_create", From: gate, If: []Test{ofOwnTime}, Why: clocks},
		{Number: linux.SYS_TIMER_SETTIME, Name: "timer_settime", From: append(runtimes("timer_settime"), Gate), Why: "runs timers for CPU profiles, and for deferred wakes of goroutines (decision 24)"},
		{Number: linux.SYS_TIMER_DELETE, Name: "timer_delete", From: append(runtimes("timer_delete"), Gate), Why: "runs timers for CPU profiles, and for deferred wakes of goroutines (decision 24)"},
		{Number: linux.SYS_PRCTL, Name: "prctl", If: []Test{names}, Why: "sets and reads names of memory and threads"},
		{Number: linux.SYS_SCHED_GETAFFINITY, Name: "sched_getaffinity", If: []Test{ofSelf}, Why: "reads the number of processors"},
		{Number: linux.SYS_SCHED_SETAFFINITY, Name: "sched_setaffinity", If: []Test{ofCaller}, Why: "sets the processors of a thread"},
		{Number: linux.SYS_GETPGID, Name: "getpgid", If: []Test{ofSelf}, Why: who},
		{Number: linux.SYS_GETSID, Name: "getsid", If: []Test{ofSelf}, Why: who},
		{Number: linux.SYS_PRLIMIT64, Name: "prlimit64", If: []Test{ofSelf, notCoreOf}, Why: bounds},
		{Number: linux.SYS_GETPRIORITY, Name: "getpriority", If: []Test{{1, Self, []uint32{0}, "the argument is this process"}}, Why: bounds},
	},
	ofConnections,
)

// Functions returns the names of all functions that rows of Calls name.
func Functions() []string {
	var names []string
	for _, c := range Calls {
		names = append(names, c.From...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// starting are calls at the start of a program: the runtime examines the machine, and Loam examines
// its descriptors.
var starting = []Call{
	{Number: linux.SYS_EXECVEAT, Name: "execveat", Why: "package sandbox starts the program", Do: Notify},
	{Number: linux.SYS_OPENAT2, Name: "openat2", From: gate, Why: "package sandbox opens /proc/self/maps", Do: Notify},
	{Number: linux.SYS_OPENAT, Name: "openat", From: append(runtimes("open"), Gate), Why: "the runtime examines the machine, and finds no files", Do: Absent},
	{Number: linux.SYS_FCNTL, Name: "fcntl", From: gate, If: []Test{{1, Equal, []uint32{linux.F_GETFD, linux.F_GETFL}, "the command is F_GETFD or F_GETFL"}}, Why: "checks how a descriptor was opened"},
	{Number: linux.SYS_FSTAT, Name: "fstat", From: gate, Why: "checks the kind of file of a descriptor"},
	{Number: linux.SYS_UNAME, Name: "uname", From: gate, Why: "reads the release of the kernel"},
	{Number: linux.SYS_MMAP, Name: "mmap", From: gate, If: []Test{{3, Equal, []uint32{linux.MAP_PRIVATE}, "the mapping is private"}, {4, AtLeast, []uint32{firstOwn}, "the descriptor is not a standard stream"}, {2, Equal, []uint32{linux.PROT_READ}, "the protection is PROT_READ"}}, Why: "maps files given by -v, and the program's own file"},
	{Number: linux.SYS_MMAP, Name: "mmap", From: gate, If: []Test{shared, ofMemory, readWrite}, Why: "maps the memory for messages to and from the server of a :rw folder"},
	{Number: linux.SYS_EPOLL_CREATE1, Name: "epoll_create1", From: gate, Why: "creates the Go runtime's network poller"},
	{Number: linux.SYS_EVENTFD2, Name: "eventfd2", From: gate, Why: "creates the Go runtime's network poller"},
}

// ofConnections are calls on connections that Linux has accepted and that the loam command hands over to the program. The
// function Process allows these calls only for a program that gets such connections.
var ofConnections = []Call{
	{Number: linux.SYS_RECVMSG, Name: "recvmsg", From: gate, If: []Test{bySocket}, Why: "receives a connection that is handed over"},
	{Number: linux.SYS_SETSOCKOPT, Name: "setsockopt", From: gate, If: []Test{handed, ofTCP, tcpOptions}, Why: options},
	{Number: linux.SYS_SETSOCKOPT, Name: "setsockopt", From: gate, If: []Test{handed, ofSocket, socketOptions}, Why: options},
	{Number: linux.SYS_SETSOCKOPT, Name: "setsockopt", From: gate, If: []Test{handed, ofIP, ipOptions}, Why: options},
	{Number: linux.SYS_GETSOCKOPT, Name: "getsockopt", From: gate, If: []Test{handed, ofSocket, errorOption}, Why: options},
	{Number: linux.SYS_GETSOCKOPT, Name: "getsockopt", From: gate, If: []Test{handed, ofTCP, tcpAnswers}, Why: options},
	{Number: linux.SYS_GETSOCKOPT, Name: "getsockopt", From: gate, If: []Test{handed, ofTCP, tcpOptions}, Why: options},
	{Number: linux.SYS_GETSOCKOPT, Name: "getsockopt", From: gate, If: []Test{handed, ofSocket, socketOptions}, Why: options},
	{Number: linux.SYS_GETSOCKOPT, Name: "getsockopt", From: gate, If: []Test{handed, ofIP, ipOptions}, Why: options},
	{Number: linux.SYS_SHUTDOWN, Name: "shutdown", From: gate, If: []Test{handed}, Why: "closes one direction of a connection"},
	{Number: linux.SYS_RECVFROM, Name: "recvfrom", From: gate, If: []Test{handed}, Why: "receives data of a connection, with flags"},
	{Number: linux.SYS_SENDTO, Name: "sendto", From: gate, If: []Test{handed, notFastTo}, Why: "sends data on a connection, with flags"},
	{Number: linux.SYS_IOCTL, Name: "ioctl", From: gate, If: []Test{handed, queued}, Why: "reads the amount of unsent or unread data of a connection"},
	{Number: linux.SYS_FCNTL, Name: "fcntl", From: gate, If: []Test{handed, copied}, Why: "the program duplicates the descriptor of a connection, to poll it twice"},
}

// Texts of the field Why that several calls share.
const (
	memory  = "manages the program's own memory"
	threads = "manages threads"
	signals = "handles signals"
	clocks  = "reads clocks, or uses timers"

	othersTime = "clocks of other processes and of devices do not exist for the program"
	who        = "returns IDs of the process"
	bounds     = "reads or sets limits and the use of resources"
	options    = "reads or sets options of a connection"
)

// fromAnywhere returns a call that any function may make.
func fromAnywhere(number uint32, name, why string) Call {
	return Call{Number: number, Name: name, Why: why}
}

// harmless lists calls that affect only the calling process and take no descriptor or path.
var harmless = []Call{
	fromAnywhere(linux.SYS_RT_SIGRETURN, "rt_sigreturn", signals),
	fromAnywhere(linux.SYS_RT_SIGPROCMASK, "rt_sigprocmask", signals),
	{Number: linux.SYS_MADVISE, Name: "madvise", If: []Test{advice}, Why: memory},
	fromAnywhere(linux.SYS_MUNMAP, "munmap", memory),
	fromAnywhere(linux.SYS_SCHED_YIELD, "sched_yield", threads),
	fromAnywhere(linux.SYS_GETTID, "gettid", threads),
	fromAnywhere(linux.SYS_GETPID, "getpid", who),
	fromAnywhere(linux.SYS_SIGALTSTACK, "sigaltstack", signals),
	fromAnywhere(linux.SYS_RT_SIGACTION, "rt_sigaction", signals),
	fromAnywhere(linux.SYS_RT_SIGPENDING, "rt_sigpending", signals),
	fromAnywhere(linux.SYS_RT_SIGTIMEDWAIT, "rt_sigtimedwait", signals),
	fromAnywhere(linux.SYS_PAUSE, "pause", signals),
	fromAnywhere(linux.SYS_MPROTECT, "mprotect", memory),
	fromAnywhere(linux.SYS_MREMAP, "mremap", memory),
	fromAnywhere(linux.SYS_MSYNC, "msync", memory),
	fromAnywhere(linux.SYS_MINCORE, "mincore", memory),
	fromAnywhere(linux.SYS_MLOCK, "mlock", memory),
	fromAnywhere(linux.SYS_MLOCK2, "mlock2", memory),
	fromAnywhere(linux.SYS_MUNLOCK, "munlock", memory),
	fromAnywhere(linux.SYS_MLOCKALL, "mlockall", memory),
	fromAnywhere(linux.SYS_MUNLOCKALL, "munlockall", memory),
	fromAnywhere(linux.SYS_GETCPU, "getcpu", threads),
	fromAnywhere(linux.SYS_ARCH_PRCTL, "arch_prctl", threads),
	fromAnywhere(linux.SYS_MEMBARRIER, "membarrier", threads),
	fromAnywhere(linux.SYS_RESTART_SYSCALL, "restart_syscall", "restarts a wait after the process was stopped (made by the kernel)"),
	{Number: linux.SYS_CLOCK_GETTIME, Name: "clock_gettime", If: []Test{ofClock}, Why: clocks},
	{Number: linux.SYS_CLOCK_GETTIME, Name: "clock_gettime", If: []Test{ofOwnTime}, Why: clocks},
	{Number: linux.SYS_CLOCK_GETRES, Name: "clock_getres", If: []Test{ofClock}, Why: clocks},
	{Number: linux.SYS_CLOCK_GETRES, Name: "clock_getres", If: []Test{ofOwnTime}, Why: clocks},
	{Number: linux.SYS_CLOCK_NANOSLEEP, Name: "clock_nanosleep", If: []Test{ofClock}, Why: clocks},
	{Number: linux.SYS_CLOCK_NANOSLEEP, Name: "clock_nanosleep", If: []Test{ofOwnTime}, Why: clocks},
	{Number: linux.SYS_CLOCK_GETTIME, Name: "clock_gettime", Why: othersTime, Do: Invalid},
	{Number: linux.SYS_CLOCK_GETRES, Name: "clock_getres", Why: othersTime, Do: Invalid},
	{Number: linux.SYS_CLOCK_NANOSLEEP, Name: "clock_nanosleep", Why: othersTime, Do: Invalid},
	fromAnywhere(linux.SYS_GETTIMEOFDAY, "gettimeofday", clocks),
	fromAnywhere(linux.SYS_TIME, "time", clocks),
	fromAnywhere(linux.SYS_TIMES, "times", clocks),
	fromAnywhere(linux.SYS_TIMER_GETTIME, "timer_gettime", clocks),
	fromAnywhere(linux.SYS_TIMER_GETOVERRUN, "timer_getoverrun", clocks),
	fromAnywhere(linux.SYS_GETITIMER, "getitimer", clocks),
	fromAnywhere(linux.SYS_SETITIMER, "setitimer", "starts timers for CPU profiles"),
	fromAnywhere(linux.SYS_ALARM, "alarm", clocks),
	fromAnywhere(linux.SYS_GETPPID, "getppid", who),
	fromAnywhere(linux.SYS_GETPGRP, "getpgrp", who),
	fromAnywhere(linux.SYS_GETUID, "getuid", who),
	fromAnywhere(linux.SYS_GETEUID, "geteuid", who),
	fromAnywhere(linux.SYS_GETGID, "getgid", who),
	fromAnywhere(linux.SYS_GETEGID, "getegid", who),
	fromAnywhere(linux.SYS_GETGROUPS, "getgroups", who),
	fromAnywhere(linux.SYS_GETRESUID, "getresuid", who),
	fromAnywhere(linux.SYS_GETRESGID, "getresgid", who),
	fromAnywhere(linux.SYS_GETRUSAGE, "getrusage", bounds),
	fromAnywhere(linux.SYS_GETRLIMIT, "getrlimit", bounds),
	{Number: linux.SYS_SETRLIMIT, Name: "setrlimit", If: []Test{notCore}, Why: bounds},
	fromAnywhere(linux.SYS_SYSINFO, "sysinfo", bounds),
	fromAnywhere(linux.SYS_GETRANDOM, "getrandom", "reads random numbers"),
}
