package posix

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"loam/fs"
	"loam/fs/memfs"
	"loam/stack"
)

// Process is one program's view of Loam: its descriptors, its files, and the
// network and the names of Unix sockets that it shares with nobody else. Its
// methods may be called from several goroutines.
type Process struct {
	options Options
	net     *stack.Stack
	fds     descriptors
	names   unixNames
	serial  serial // of netlink ports
	leaving leaving
	handed  handedPorts
	streams [3]*stream // those that differ; what is opened once more shares what was read

	view   atomic.Pointer[fs.View] // replaced, never changed
	viewMu sync.Mutex              // held while it is replaced
	fifos  fifos
	flocks lockTable // flock(2)
	ranges lockTable // fcntl(2)

	mappings mappings
	watchers watchers
	keepCaps atomic.Int32 // PR_SET_KEEPCAPS, which is each thread's on Linux
}

// Options says what a process stands on.
type Options struct {
	// Network is the stack that AF_INET sockets use; nil: there is none, and
	// making one fails with EAFNOSUPPORT.
	Network *stack.Stack
	// Files is what paths lead to; nil: an empty file system in memory.
	Files *fs.Tree
	// Streams are the descriptors 0, 1 and 2; nil: not open.
	Streams [3]Stream
	// Missed, if it is there, is told each path that open(2) does not find.
	Missed func(path string)
	// Credentials are what a peer sees of this process.
	Credentials Credentials
	// Hostname is the name of the machine, and Release that of the host's kernel,
	// such as "6.1.0": see Uname.
	Hostname, Release string
	// Clock reads a clock of clock_gettime(2), monotonic or boottime, to which timers
	// (timerfd_create(2)) are set.
	Clock func(id int) time.Duration
}

// Credentials are struct ucred (unix(7)).
type Credentials struct{ PID, UID, GID int32 }

// New makes a process that has no descriptors but its streams. It begins in the
// root folder.
func New(o Options) *Process {
	p := &Process{options: o, net: o.Network}
	p.names.init()
	files := o.Files
	if files == nil {
		files = fs.NewTree(memfs.New(memfs.Config{}))
	}
	v := fs.NewView(files)
	v.Who = fs.Credentials{UID: uint32(o.Credentials.UID), GID: uint32(o.Credentials.GID)}
	p.view.Store(v)
	p.installStreams()
	return p
}

// serial numbers things that need a name of their own.
type serial struct {
	mu sync.Mutex
	n  uint32
}

func (s *serial) next() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return s.n
}

// get finds an open file. Errors: EBADF.
func (p *Process) get(fd int) (*open, Errno) {
	o := p.fds.get(fd)
	if o == nil {
		return nil, syscall.EBADF
	}
	return o, 0
}

// socket finds an open socket. Errors: EBADF, ENOTSOCK.
func (p *Process) socket(fd int) (*open, socket, Errno) {
	o := p.fds.get(fd)
	if o == nil {
		return nil, nil, syscall.EBADF
	}
	s, ok := o.file.(socket)
	if !ok {
		return nil, nil, syscall.ENOTSOCK
	}
	return o, s, 0
}

// install gives a new file its first descriptor. typeFlags may have
// SOCK_NONBLOCK and SOCK_CLOEXEC, which are O_NONBLOCK and O_CLOEXEC.
func (p *Process) install(f file, typeFlags int) (int, Errno) {
	return p.installWith(f, syscall.O_RDWR|typeFlags&syscall.O_NONBLOCK, typeFlags&syscall.O_CLOEXEC != 0)
}

// installWith is install for a file with an access mode; flags are those of
// newOpen.
func (p *Process) installWith(f file, flags int, cloexec bool) (int, Errno) {
	fd, errno := p.fds.insert(newOpen(f, flags), 0, cloexec)
	if errno != 0 {
		f.close()
	}
	return fd, errno
}

// toErrno is the number of an error of the stack or of the tree; nil is 0.
func toErrno(err error) Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(Errno); ok {
		return e
	}
	if e, ok := err.(interface{ Errno() Errno }); ok {
		return e.Errno()
	}
	return syscall.EIO
}
