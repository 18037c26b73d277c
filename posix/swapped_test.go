package posix

import (
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
)

// swapping is a file system whose root directory changes between two lookups of one name, as if another process had replaced
// the file.
type swapping struct {
	*memfs.FileSystem
	root swappingRoot
}

func (s *swapping) Root() fs.Directory { return &s.root }

type swappingRoot struct {
	fs.Directory
	name, later string // from the second lookup on, name leads to the file later
	lookups     int
}

func (d *swappingRoot) Lookup(name string) (fs.Node, error) {
	if name == d.name {
		if d.lookups++; d.lookups > 1 {
			name = d.later
		}
	}
	return d.Directory.Lookup(name)
}

// swapped returns a process in such a file system.
func swapped(t *testing.T, name, later string) *Process {
	s := &swapping{FileSystem: memfs.New(memfs.Config{})}
	s.root = swappingRoot{s.FileSystem.Root(), name, later, 0}
	p := New(Options{Credentials: Credentials{PID: 7}, Files: fs.NewTree(s)})
	t.Cleanup(p.fds.RemoveAll)
	return p
}

// A user who replaces a FIFO while it is opened does not get a FIFO without permission.
func TestFIFOReplacedDuringOpen(t *testing.T) {
	for _, how := range []OpenHow{{Flags: linux.O_RDWR}, {Flags: linux.O_RDWR, Resolve: uint64(fs.Beneath)}} {
		p := swapped(t, "open", "open")
		p.Umask(0)
		ok(t, p.MknodAt(linux.AT_FDCWD, "/open", linux.S_IFIFO|0o666, 0))
		ok(t, p.MknodAt(linux.AT_FDCWD, "/closed", linux.S_IFIFO|0o600, 0))
		asUser(p)
		p.Close(fd(t)(p.OpenAt2(linux.AT_FDCWD, "open", how)))
		root := p.sight().Root.Node.(*swappingRoot)
		root.lookups, root.later = 0, "closed"
		_, errno := p.OpenAt2(linux.AT_FDCWD, "open", how)
		wantErrno(t, errno, linux.EACCES, "the FIFO was replaced")
	}
}

// A user who replaces the file of a socket during bind(2) does not get the connections of another socket.
func TestSocketFileReplacedDuringBind(t *testing.T) {
	p := swapped(t, "new", "victim")
	victim := fd(t)(p.Socket(linux.AF_UNIX, linux.SOCK_STREAM, 0))
	ok(t, p.Bind(victim, Address{Family: linux.AF_UNIX, Name: "/victim"}))
	ok(t, p.Listen(victim, 5))
	other := fd(t)(p.Socket(linux.AF_UNIX, linux.SOCK_STREAM, 0))
	ok(t, p.Bind(other, Address{Family: linux.AF_UNIX, Name: "/new"}))
	client := fd(t)(p.Socket(linux.AF_UNIX, linux.SOCK_STREAM, 0))
	ok(t, p.Connect(client, Address{Family: linux.AF_UNIX, Name: "/victim"}))
}
