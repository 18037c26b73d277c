package procfs

import (
	"fmt"

	"loam/abi/linux"
	"loam/fs"
)

// The directory ns of a process, with a link to each of its namespaces (namespaces(7)). All processes share the namespaces, except that
// a process may have mounts of its own. The numbers of the shared namespaces are those of Linux's initial namespaces: programs
// compare them with these numbers to learn whether they run in a container.

// namespaceKind is an entry of the directory ns.
type namespaceKind struct {
	name   string
	kind   string // in the target of the link: "net:[4026531833]"
	flag   int    // constant of clone(2)
	number uint64 // inode number of the initial namespace
}

// namespaceKinds are the entries, in the order of a listing. The index is the number of the entry: node.fd.
var namespaceKinds = [...]namespaceKind{
	{"net", "net", linux.CLONE_NEWNET, 0xeffffff9},
	{"uts", "uts", linux.CLONE_NEWUTS, 0xeffffffe},
	{"ipc", "ipc", linux.CLONE_NEWIPC, 0xefffffff},
	{"pid", "pid", linux.CLONE_NEWPID, 0xeffffffc},
	{"pid_for_children", "pid", linux.CLONE_NEWPID, 0xeffffffc},
	{"user", "user", linux.CLONE_NEWUSER, 0xeffffffd},
	{"mnt", "mnt", linux.CLONE_NEWNS, 0xeffffff8},
	{"cgroup", "cgroup", linux.CLONE_NEWCGROUP, 0xeffffffb},
	{"time", "time", linux.CLONE_NEWTIME, 0xeffffffa},
	{"time_for_children", "time", linux.CLONE_NEWTIME, 0xeffffffa},
}

// initialIDs is the content of uid_map and gid_map in the initial user namespace: all IDs are mapped to themselves.
const initialIDs = "         0          0 4294967295\n"

// firstCopy is the inode number of the first mount namespace that a process makes.
const firstCopy = 0xf0000000

// Namespaces of a process: the directory, and an entry in it.
var (
	namespaces = &entry{name: "ns", kind: folder, mode: 0o511}
	namespace  = &entry{kind: magic, mode: 0o777, guarded: true}
)

// Namespace is the file to which an entry of the directory ns leads.
type Namespace struct {
	Flag   int      // CLONE_NEWNET and the like
	Number uint64   // inode number
	Mounts *fs.Tree // for a mount namespace; nil: unknown
	since  fs.Time
}

// namespaceOf returns the namespace of a process for an entry.
func (n node) namespaceOf(p Process) *Namespace {
	k := namespaceKinds[n.fd]
	s := &Namespace{Flag: k.flag, Number: k.number, since: n.in.since}
	if k.flag == linux.CLONE_NEWNS {
		if s.Mounts = p.Tree(); s.Mounts != nil && s.Mounts.Number() > 0 {
			s.Number = firstCopy + uint64(s.Mounts.Number()) - 1
		}
	}
	return s
}

// Namespace returns the kind and the mounts, for setns(2) and ioctl_ns(2).
func (s *Namespace) Namespace() (kind int, mounts *fs.Tree) { return s.Flag, s.Mounts }

// Owner returns the user namespace that owns the namespace: there is only one.
func (s *Namespace) Owner() fs.Node {
	for _, k := range namespaceKinds {
		if k.flag == linux.CLONE_NEWUSER {
			return &Namespace{Flag: k.flag, Number: k.number, since: s.since}
		}
	}
	return nil
}

// text returns the target of the link of a namespace.
func (s *Namespace) text(n node) string {
	return fmt.Sprintf("%s:[%d]", namespaceKinds[n.fd].kind, s.Number)
}

// Attr implements fs.Node.
func (s *Namespace) Attr() fs.Attr {
	return fs.Attr{Inode: s.Number, Mode: fs.Regular | 0o444, Links: 1, BlockSize: 4096, Access: s.since, Modify: s.since, Status: s.since}
}

// Change implements fs.Node.
func (s *Namespace) Change(fs.Change) error { return linux.EPERM }

// Open implements fs.Node. A view opens files by OpenFor; mmap(2) fails with ENODEV.
func (s *Namespace) Open(fs.Flags) (fs.Handle, error) { return nil, linux.ENODEV }

// OpenFor implements fs.Guarded. Errors: EPERM for writing, as on Linux.
func (s *Namespace) OpenFor(_ *fs.View, flags fs.Flags) (fs.Handle, error) {
	if flags.MayWrite() {
		return nil, linux.EPERM
	}
	return namespaceHandle{}, nil
}

// namespaceHandle is an open namespace, which has no content.
type namespaceHandle struct{ handle }

// ReadAt implements fs.Handle.
func (namespaceHandle) ReadAt([]byte, int64) (int, error) { return 0, linux.EINVAL }

// namespaceNamed returns the entry of the directory ns with a name.
func (d dirNode) namespaceNamed(name string) (fs.Node, error) {
	for i, k := range namespaceKinds {
		if k.name == name {
			return wrap(d.entryAt(i, namespace)), nil
		}
	}
	return nil, linux.ENOENT
}

// entryAt returns a numbered entry of a directory.
func (d dirNode) entryAt(i int, what *entry) node {
	n := d.node
	n.fd, n.what = i, what
	return n
}

// readNamespaces yields the entries of the directory ns after a cursor.
func (d dirNode) readNamespaces(cursor uint64, yield func(fs.Entry) bool) error {
	for i := int(cursor); i < len(namespaceKinds); i++ {
		n := d.entryAt(i, namespace)
		if !yield(fs.Entry{Name: namespaceKinds[i].name, Inode: n.inode(), Type: fs.Symlink, Cursor: uint64(i) + 1}) {
			break
		}
	}
	return nil
}
