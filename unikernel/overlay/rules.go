package overlay

import "strings"

// The edits of the standard library. The replacement of each renamed function is in _std, _process or _vm,
// in the same package.

// release holds the edits for one release of Go.
type release struct {
	version string // such as "go1.26"; covers all its patch releases
	newest  string // newest patch release that was reviewed and run; the oldest supported one is VERSION.0
	renames []rename
	fields  []field
}

// releases are the supported releases of Go. Go 1.27 did not change the functions concerned, except for how
// epoll events identify netpollBreak (loam_arrivals.go).
var releases = []release{
	{"go1.26", "go1.26.11", renames, fields},
	{"go1.27", "go1.27.4", renames, fields},
}

// renames are the rules for all programs.
var renames = []rename{
	// Each system call passes through Loam's hook (loam_hook.go).
	{"syscall/syscall_linux.go", "func Syscall(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err Errno)", "linuxSyscall"},
	{"syscall/syscall_linux.go", "func Syscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno)", "linuxSyscall6"},
	{"syscall/syscall_linux.go", "func RawSyscall(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err Errno)", "linuxRawSyscall"},
	{"syscall/syscall_linux.go", "func RawSyscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno)", "linuxRawSyscall6"},
	{"syscall/zsyscall_linux_amd64.go", "func read(fd int, p []byte) (n int, err error)", "linuxRead"},
	{"syscall/zsyscall_linux_amd64.go", "func write(fd int, p []byte) (n int, err error)", "linuxWrite"},
	{"internal/syscall/unix/fcntl_unix.go", "func Fcntl(fd int, cmd int, arg int) (int, error)", "linuxFcntl"},

	// Reads and writes of files whose calls never block take a fast path.
	{"internal/poll/fd_unix.go", "func (fd *FD) Init(net string, pollable bool) error", "linuxInit"},
	{"internal/poll/fd_unix.go", "func (fd *FD) Read(p []byte) (int, error)", "linuxRead"},
	{"internal/poll/fd_unix.go", "func (fd *FD) Write(p []byte) (int, error)", "linuxWrite"},
	{"internal/poll/fd_unix.go", "func (fd *FD) Pread(p []byte, off int64) (int, error)", "linuxPread"},
	{"internal/poll/fd_unix.go", "func (fd *FD) Pwrite(p []byte, off int64) (int, error)", "linuxPwrite"},

	// Functions that call the kernel without the hook are replaced by versions of Loam.
	{"syscall/exec_unix.go", "func forkExec(argv0 string, argv []string, attr *ProcAttr) (pid int, err error)", "linuxForkExec"},
	{"syscall/exec_linux.go", "func os_checkClonePidfd() error", "linuxCheckClonePidfd"},
	{"syscall/zsyscall_linux_amd64.go", "func Umask(mask int) (oldmask int)", "linuxUmask"},
	{"syscall/syscall_linux.go", "func AllThreadsSyscall(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err Errno)", "linuxAllThreadsSyscall"},
	{"syscall/syscall_linux.go", "func AllThreadsSyscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno)", "linuxAllThreadsSyscall6"},
	{"runtime/runtime.go", "func setCrashFD(fd uintptr) uintptr", "linuxSetCrashFD"},

	// Readiness of Loam's descriptors is reported without epoll.
	{"runtime/netpoll_epoll.go", "func netpollopen(fd uintptr, pd *pollDesc) uintptr", "linuxNetpollopen"},
	{"runtime/netpoll_epoll.go", "func netpollclose(fd uintptr) uintptr", "linuxNetpollclose"},

	// The wake of another thread for a runnable goroutine may be deferred.
	{"runtime/proc.go", "func wakep()", "linuxWakep"},
	{"runtime/os_linux.go", "func unminit()", "linuxUnminit"},

	// Loam's goroutines are hidden from the program.
	{"runtime/traceback.go", "func isSystemGoroutine(gp *g, fixed bool) bool", "linuxIsSystemGoroutine"},
	{"runtime/traceback.go", "func tracebacksomeothers(me *g, showf func(*g) bool)", "linuxTracebacksomeothers"},
	{"runtime/proc.go", "func pidleput(pp *p, now int64) int64", "linuxPidleput"},

	// System calls that trap are served by Loam.
	{"runtime/signal_unix.go", "func sighandler(sig uint32, info *siginfo, ctxt unsafe.Pointer, gp *g)", "linuxSighandler"},
	{"runtime/preempt.go", "func asyncPreempt2()", "linuxAsyncPreempt2"},

	// A panic unmounts disks before it ends the program.
	{"runtime/panic.go", "func preprintpanics(p *_panic)", "linuxPreprintpanics"},

	// Loam's packages are initialised before the program's.
	{"runtime/proc.go", "func doInit(ts []*initTask)", "linuxDoInit"},
}

// processRenames are the rules for programs that run as a process. The replacements are in _process.
var processRenames = []rename{
	// The poller records what it returned, for deferred wakes.
	{"runtime/netpoll_epoll.go", "func netpoll(delay int64) (gList, int32)", "linuxNetpoll"},

	// The program cannot open files of the host, so the size of a huge page is a constant.
	{"runtime/os_linux.go", "func getHugePageSize() uintptr", "linuxGetHugePageSize"},

	// Events of handed-over connections are recorded.
	{"internal/runtime/syscall/linux/syscall_linux.go", "func EpollWait(epfd int32, events []EpollEvent, maxev, waitms int32) (n int32, errno uintptr)", "linuxEpollWait"},
}

// machineRenames are the rules for programs in a virtual machine. The replacements are in _vm.
var machineRenames = []rename{
	// Interrupts wake the goroutine that waits for them.
	{"runtime/netpoll_epoll.go", "func netpoll(delay int64) (gList, int32)", "linuxNetpoll"},

	// The message for a stack overflow adds that the machine's memory limits stacks.
	{"runtime/panic.go", "func startpanic_m() bool", "linuxStartpanic_m"},
}

// fields are the fields added to structs of the standard library. Each is the first field of its struct.
var fields = []field{
	{"internal/poll/fd_unix.go", "FD", "loam loamFile"},
	{"runtime/runtime2.go", "p", "loam loamDeferred"},
	{"runtime/runtime2.go", "m", "loam loamAlarm"},
	{"runtime/netpoll.go", "pollDesc", "loam loamArrivals"},
}

// shape is text that a file of the standard library must contain, because Loam's code relies on it.
type shape struct {
	file string // path of the file below GOROOT/src
	text string
}

// shapes lists the order in which asyncPreempt saves registers; _std/runtime/loam_trap.go relies on it.
var shapes = []shape{
	{"runtime/preempt_amd64.s", `
	MOVQ AX, 0(SP)
	MOVQ CX, 8(SP)
	MOVQ DX, 16(SP)
	MOVQ BX, 24(SP)
	MOVQ SI, 32(SP)
	MOVQ DI, 40(SP)
	MOVQ R8, 48(SP)
	MOVQ R9, 56(SP)
	MOVQ R10, 64(SP)
	MOVQ R11, 72(SP)
`},
}

// findRelease returns the release of a version such as "go1.26.8", or false if it is not supported.
func findRelease(version string) (release, bool) {
	for _, r := range releases {
		rest, ok := strings.CutPrefix(version, r.version)
		if ok && (rest == "" || rest[0] == '.') {
			return r, true
		}
	}
	return release{}, false
}

// Known returns the supported releases as text for messages.
func Known() string {
	var names []string
	for _, r := range releases {
		names = append(names, r.version)
	}
	return strings.Join(names, ", ")
}

// Tried returns the oldest and the newest tested patch release of each supported release, oldest first.
func Tried() []string {
	var names []string
	for _, r := range releases {
		names = append(names, r.version+".0", r.newest)
	}
	return names
}
