package procfs

import (
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/credential"
)

// Source is the system whose processes are shown. Its methods may be called by any goroutine.
type Source interface {
	// Processes returns the IDs of all processes in ascending order, zombies included.
	Processes() []int
	// Process returns the process that has a thread with an ID, or nil.
	Process(id int) Process
}

// Process is one process. Methods return zero values after its end.
type Process interface {
	PID() int
	// Threads returns the IDs of the threads in ascending order.
	Threads() []int
	// Stat returns a snapshot of a thread without the sizes of its memory, and false if there is no such thread.
	Stat(tid int) (Stat, bool)
	// Owner returns the user and group that own the files of the process, and whether it is dumpable (PR_SET_DUMPABLE).
	Owner() (uid, gid uint32, dumpable bool)
	// MayInspect reports whether the caller may see information that only the process itself and its debuggers may see
	// (ptrace(2)).
	MayInspect(c fs.Caller) bool

	// Memory is the memory that the process has at the time of each call. Pinned returns the memory that it has now, which is empty as
	// soon as execve(2) has replaced it. An open file uses this view, because its opener must not access the memory of the new program.
	Memory
	Pinned() Memory

	// Descriptors returns the open descriptors in ascending order, and Descriptor describes one. AccessOf returns the flags of one: it
	// must not look up names, because a name in fd or fdinfo needs it.
	Descriptors() []int
	Descriptor(fd int) (Descriptor, bool)
	AccessOf(fd int) (flags int, open bool)
	// Link returns a file that the process uses, such as its executable, and the path of the file.
	Link(l Link) (place fs.Place, path string, ok bool)
	// Mounted returns the mounts that processes have made, as the process sees them.
	Mounted() []fs.Mounted
	// Tree returns the mounts that the process sees, or nil after its end.
	Tree() *fs.Tree
	// Counts returns the values of the file io.
	Counts() Counts
	// Set changes an attribute to the text that a caller has written to its file. Errors: EINVAL, EPERM, EACCES.
	Set(c fs.Caller, tid int, a Attribute, text string) error
}

// Memory is the memory of a process.
type Memory interface {
	// Exists reports whether the process has the memory: it has not ended.
	Exists() bool
	// Sizes fills in the sizes of the memory. It visits all mapped pages, which may take milliseconds.
	Sizes(*Stat)
	// Arguments, Environment and Auxv return the initial strings and the auxiliary vector, from the memory of the process.
	Arguments() []byte
	Environment() []byte
	Auxv() []byte
	Maps() []byte
	// Smaps returns a part of the text of the file smaps, as mem.Map.Smaps does.
	Smaps(from uint64, size int) (text []byte, next uint64)
	// Rollup returns the text of the file smaps_rollup.
	Rollup() []byte
	// QueryRegion implements PROCMAP_QUERY, except for the buffers of q. Errors: ENOENT, ESRCH.
	QueryRegion(q *linux.ProcmapQuery, wantID bool) (name string, id []byte, err error)
	// ReadMemory and WriteMemory access the memory of the process. They return the number of bytes, which is 0 if the
	// address is not mapped.
	ReadMemory(b []byte, addr uint64) int
	WriteMemory(b []byte, addr uint64) int
	// Present reports whether the page of the process at an address is in physical memory.
	Present(addr uint64) bool
}

// Link selects a symbolic link in /proc/PID, such as exe or cwd.
type Link uint8

// Values of Link.
const (
	Executable Link = iota
	WorkingDirectory
	Root
)

// Attribute is an attribute of a process that changes when its file is written.
type Attribute uint8

// Values of Attribute.
const (
	Name Attribute = iota
	KillPreference
	LoginUser
)

// Descriptor describes an open file.
type Descriptor struct {
	Name   string // "/path", "socket:[5]", "pipe:[7]", ...
	Place  fs.Place
	Flags  int // flags of open(2)
	Offset int64
	Inode  uint64
	Mount  int
	Extra  func() string // lines of fdinfo that depend on the kind of the file; nil: none
}

// Counts holds the numbers of /proc/PID/io, in bytes and calls.
type Counts struct{ BytesRead, BytesWritten, Reads, Writes uint64 }

// Stat is a snapshot of a thread. Sizes are in bytes.
type Stat struct {
	PID, TID, Parent, Group, Session int
	// device number of the controlling terminal, 0 for none; and its foreground process group, or -1
	Terminal, TerminalGroup int
	Tracer                  int
	Name                    string
	State                   byte // letter of ps(1): R, S, D, T or Z
	ExitSignal              int
	Threads                 int
	Started                 time.Duration // time at which the thread started, relative to the start of the machine

	User, System, ChildUser, ChildSystem   time.Duration
	Minor, Major, ChildMinor, ChildMajor   uint64 // page faults of the process, and of children that were waited for
	Voluntary, Involuntary                 uint64 // numbers of context switches
	Nice, Policy, Priority                 int
	Affinity                               []uint64
	Credentials                            credential.Set
	Umask                                  uint32
	TableSize                              int // number of slots of the descriptor table
	Pending, SharedPending, Blocked        uint64
	Ignored, Caught                        uint64
	Queued                                 uint64 // number of queued signals
	Limits                                 [linux.RLIM_NLIMITS]linux.Rlimit
	KillPreference                         int    // value of oom_score_adj
	LoginUser                              uint32 // user ID of the login (file loginuid); -1: not set
	Size, Peak, Locked, Data, Stack, Code  uint64
	Resident, ResidentPeak, Anonymous      uint64
	CodeStart, CodeEnd, DataStart, DataEnd uint64
	StackStart, BreakStart                 uint64
	ArgStart, ArgEnd, EnvStart, EnvEnd     uint64
	Memory                                 bool // the process has memory: it is not a zombie
	ExitCode                               int
	Persona                                uint32 // execution domain (personality(2))
	SmallPages                             bool
	Filtered, Filters                      int // mode of seccomp(2), and number of filters
}
