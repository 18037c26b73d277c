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
	// Stat returns a snapshot of a thread, and false if there is no such thread.
	Stat(tid int) (Stat, bool)
	// Owner returns the user and group that own the files of the process, and whether it is dumpable (PR_SET_DUMPABLE).
	Owner() (uid, gid uint32, dumpable bool)
	// MayInspect reports whether a thread may see what only the process itself and debuggers may (ptrace(2)).
	MayInspect(c fs.Caller) bool

	// Arguments, Environment and Auxv return the initial strings and the auxiliary vector, from the memory of the process.
	Arguments() []byte
	Environment() []byte
	Auxv() []byte
	Maps() []byte
	Smaps() []byte
	// ReadMemory and WriteMemory access the memory of the process. They return 0 where there is none.
	ReadMemory(b []byte, addr uint64) int
	WriteMemory(b []byte, addr uint64) int
	// Present reports whether a page is in memory.
	Present(addr uint64) bool

	// Descriptors returns the open descriptors in ascending order, and Descriptor describes one.
	Descriptors() []int
	Descriptor(fd int) (Descriptor, bool)
	// Link returns a file that the process uses, and its path.
	Link(l Link) (place fs.Place, path string, ok bool)
	// Counts returns the numbers of the file io.
	Counts() Counts
	// Set changes an attribute to text that a caller has written. Errors: EINVAL, EPERM, EACCES.
	Set(c fs.Caller, tid int, a Attribute, text string) error
}

// Link selects a symbolic link in /proc/PID, such as exe or cwd.
type Link uint8

// Links.
const (
	Executable Link = iota
	WorkingDirectory
	Root
)

// Attribute is an attribute of a process that a write to a file changes.
type Attribute uint8

// Attributes.
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
	Extra  string // further lines of fdinfo
}

// Counts holds the numbers of /proc/PID/io, in bytes and calls.
type Counts struct{ BytesRead, BytesWritten, Reads, Writes uint64 }

// Stat is a snapshot of a thread. Sizes are in bytes.
type Stat struct {
	PID, TID, Parent, Group, Session int
	Terminal, TerminalGroup          int // device number of the controlling terminal, 0 for none; and its foreground group, or -1
	Tracer                           int
	Name                             string
	State                            byte // as in ps(1): R, S, D, T, Z
	ExitSignal                       int
	Threads                          int
	Started                          time.Duration // since the start of the machine

	User, System, ChildUser, ChildSystem   time.Duration
	Minor, Major, ChildMinor, ChildMajor   uint64 // page faults
	Voluntary, Involuntary                 uint64 // context switches
	Nice, Policy, Priority                 int
	Affinity                               []uint64
	Credentials                            credential.Set
	Umask                                  uint32
	TableSize                              int // size of the descriptor table
	Pending, SharedPending, Blocked        uint64
	Ignored, Caught                        uint64
	Queued                                 uint64 // signals
	Limits                                 [linux.RLIM_NLIMITS]linux.Rlimit
	KillPreference                         int    // oom_score_adj
	LoginUser                              uint32 // user ID of the login (loginuid); -1: not set
	Size, Peak, Locked, Data, Stack, Code  uint64
	Resident, ResidentPeak, Anonymous      uint64
	CodeStart, CodeEnd, DataStart, DataEnd uint64
	StackStart, BreakStart                 uint64
	ArgStart, ArgEnd, EnvStart, EnvEnd     uint64
	Memory                                 bool // it has memory: it is no zombie
	ExitCode                               int
	Persona                                uint32 // personality(2)
	SmallPages                             bool
	Filtered, Filters                      int // the mode of seccomp(2), and the number of filters
}
