package posix

import (
	"sync"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/devpts"
	"loam/fs/memfs"
	"loam/posix/event"
	"loam/posix/file"
	"loam/posix/inet"
	"loam/posix/lock"
	"loam/posix/mapping"
	"loam/posix/mqueue"
	"loam/posix/pipe"
	"loam/posix/socket"
	"loam/posix/timer"
	"loam/posix/tty"
	"loam/posix/unix"
	"loam/stack"
)

// Process is a process as one of its threads sees it: the descriptor table, the place in the file tree (root, working
// directory and umask), and other state of the process. Threads and processes may share each of the three, as clone(2)
// defines (Fork, Task). Its methods may be called from several goroutines at once.
type Process struct {
	*System
	*place
	*own
	fds       *file.Table
	who       *identity       // thread ID and credentials; nil for a Go program
	interrupt *file.Interrupt // ends a wait of the thread with EINTR; nil: nothing does
	bed       *file.Bed       // keeps the thread's Sleeper between waits; nil for a Go program
	member    Member          // the thread as job control sees it; nil: see alone
}

// System is the state that all processes share: the network, the names of Unix sockets, FIFOs, and locks on files.
type System struct {
	net       *stack.Stack
	kernel    Kernel
	nodeNames nodeNames
	missed    func(path string)
	clock     func(id int) time.Duration

	names     unix.Names
	serial    file.Serial // allocates port numbers of netlink sockets
	inet      inet.Network
	pipes     pipe.System
	terminals tty.System
	locks     lock.Files
	OpenMax   file.Most
	watchers  event.Watchers
	queues    mqueue.State
	direct    atomic.Bool // a file was opened with O_DIRECT

	newMemoryFS func(memfs.Config) *memfs.FileSystem // see Options.NewMemory
}

// Inet returns the network, Pipes the settings of pipes, Locks the locks and leases of files, and Watchers the inotify instances.
func (s *System) Inet() *inet.Network       { return &s.inet }
func (s *System) Pipes() *pipe.System       { return &s.pipes }
func (s *System) Locks() *lock.Files        { return &s.locks }
func (s *System) Watchers() *event.Watchers { return &s.watchers }

// place holds the root, the working directory and the umask of a process in the file tree.
type place struct {
	view   atomic.Pointer[fs.View] // a change replaces the whole view
	viewMu sync.Mutex              // held while view is replaced
}

// own is the state of one process that its threads share and that no other process shares. A pointer to it identifies the
// process as the owner of record locks.
type own struct {
	credentials Credentials
	streams     [3]*stream // the standard streams, each only once: descriptors of the same stream share the input that was read ahead
	mappings    mapping.Table
	detached    atomic.Bool            // TIOCNOTTY has been called: the process no longer uses the terminal of its session
	limits      atomic.Pointer[limits] // nil: the process has no limits
	keepCaps    atomic.Int32           // PR_SET_KEEPCAPS; on Linux, each thread has this flag
	timers      timer.Set
	wishes      wishes
}

// Options configures a Process.
type Options struct {
	// Network is the stack that AF_INET and AF_INET6 sockets use. If it is nil, creating such a socket fails with
	// EAFNOSUPPORT.
	Network *stack.Stack
	// Kernel serves calls about memory, signals and limits. If it is nil, they fail with ENOSYS.
	Kernel Kernel
	// Files is the file tree in which paths are resolved; nil means an empty file system in memory.
	Files *fs.Tree
	// Terminals is the file system in which pseudo-terminals get their files. It should be mounted at /dev/pts. If it is
	// nil, there are no pseudo-terminals.
	Terminals *devpts.FileSystem
	// Streams are the standard streams, descriptors 0, 1 and 2. A nil stream is not open.
	Streams [3]Stream
	// Missed, if not nil, is called with each path that open(2) has not found.
	Missed func(path string)
	// Credentials are the credentials that a peer of a Unix socket gets by SO_PEERCRED.
	Credentials Credentials
	// Hostname is the host name that Uname returns.
	Hostname string
	// Clock reads the clock with an ID of clock_gettime(2): CLOCK_MONOTONIC, CLOCK_BOOTTIME, or the CPU time of the process. Timers
	// expire by this clock. nil: all clocks read the time since New.
	Clock func(id int) time.Duration
	// Sender sends the signals of timers. If it is nil, timers that send signals are not supported.
	Sender Sender
	// NewMemory returns a file system in memory for mount(2). nil: memfs.New.
	NewMemory func(memfs.Config) *memfs.FileSystem
}

// New returns the first process of a new system. Its only descriptors are its standard streams. Its working directory is
// the root directory.
func New(o Options) *Process {
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func(int) time.Duration { return time.Since(start) }
	}
	p := &Process{
		System: &System{net: o.Network, kernel: o.Kernel, missed: o.Missed, clock: o.Clock, newMemoryFS: o.NewMemory},
		place:  &place{},
		own:    &own{credentials: o.Credentials},
		fds:    &file.Table{},
	}
	if o.Hostname != "" {
		p.SetHostname(o.Hostname)
	}
	p.timers.Init(o.Clock, o.Sender)
	p.inet.Init(o.Network)
	p.names.Init()
	files := o.Files
	if files == nil {
		files = fs.NewTree(memfs.New(memfs.Config{}))
	}
	p.terminals.Init(o.Terminals, files, alone{o.Kernel, o.Credentials.PID})
	v := fs.NewView(files)
	v.Who = fs.Credentials{UID: uint32(o.Credentials.UID), GID: uint32(o.Credentials.GID)}
	p.view.Store(v)
	p.installStreams(o.Streams)
	return p
}

// get returns the open file description of fd. Errors: EBADF, also for O_PATH.
func (p *Process) get(fd int) (*file.Description, Errno) {
	o := p.fds.Get(fd)
	if o == nil || o.PathOnly() {
		return nil, linux.EBADF
	}
	return o, 0
}

// getAny returns the open file description of fd, also of a descriptor opened with O_PATH. Errors: EBADF.
func (p *Process) getAny(fd int) (*file.Description, Errno) {
	o := p.fds.Get(fd)
	if o == nil {
		return nil, linux.EBADF
	}
	return o, 0
}

// socket returns the open file description and the socket of fd. Errors: EBADF, ENOTSOCK.
func (p *Process) socket(fd int) (*file.Description, socket.Socket, Errno) {
	o := p.fds.Get(fd)
	if o == nil {
		return nil, nil, linux.EBADF
	}
	s, ok := o.File.(socket.Socket)
	switch {
	case ok:
		return o, s, 0
	case o.PathOnly():
		return nil, nil, linux.EBADF
	}
	return nil, nil, linux.ENOTSOCK
}

// install allocates a descriptor for a new file, opened for reading and writing. typeFlags may contain SOCK_NONBLOCK and
// SOCK_CLOEXEC, which have the same values as O_NONBLOCK and O_CLOEXEC.
func (p *Process) install(f file.File, typeFlags int) (int, Errno) {
	return p.installWith(f, linux.O_RDWR|typeFlags&linux.O_NONBLOCK, typeFlags&linux.O_CLOEXEC != 0)
}

// installWith allocates a descriptor for a new file. flags holds the access mode and the status flags, as for
// file.NewDescription. On error, it closes the file.
func (p *Process) installWith(f file.File, flags int, cloexec bool) (int, Errno) {
	return p.insert(file.NewDescription(f, flags), cloexec)
}

// insert allocates a descriptor for a new description. On error, it closes the file.
func (p *Process) insert(o *file.Description, cloexec bool) (int, Errno) {
	fd, errno := p.fds.Insert(o, 0, p.MostFiles(), cloexec)
	if errno != 0 {
		o.File.Close()
	}
	return fd, errno
}
