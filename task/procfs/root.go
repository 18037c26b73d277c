package procfs

import (
	"strconv"

	"loam/abi/linux"
	"loam/fs"
)

// The entries in the root of /proc: a directory for each process, and links to the directory of the caller.

// selfLink is the symbolic link /proc/self or /proc/thread-self.
type selfLink struct {
	in     *Processes
	thread bool
}

// Names and cursors of the links. Their cursors are higher than those of all processes.
const (
	selfName, threadName = "self", "thread-self"

	selfCursor = 1 << 30
)

// Attr implements fs.Node.
func (l selfLink) Attr() fs.Attr {
	return fs.Attr{Inode: selfCursor + uint64(flag(l.thread)), Mode: fs.Symlink | 0o777, Links: 1, BlockSize: 1024,
		Access: l.in.since, Modify: l.in.since, Status: l.in.since}
}

// Change implements fs.Node.
func (l selfLink) Change(fs.Change) error { return linux.EPERM }

// Open implements fs.Node.
func (l selfLink) Open(fs.Flags) (fs.Handle, error) { return nil, linux.ELOOP }

// Target implements fs.Link. It fails, because the target depends on the caller: see TargetFor.
func (l selfLink) Target() (string, error) { return "", linux.ENOENT }

// TargetFor implements fs.Personal.
func (l selfLink) TargetFor(v *fs.View) (string, error) {
	if v.Caller.PID == 0 {
		if l.in.Own == 0 {
			return "", linux.ENOENT
		}
		return strconv.Itoa(l.in.Own), nil
	}
	path := strconv.Itoa(int(v.Caller.PID))
	if l.thread {
		path += "/task/" + strconv.Itoa(int(v.Caller.TID))
	}
	return path, nil
}

// directory returns the directory of a process.
func (p *Processes) directory(pid int) dirNode {
	return dirNode{node{in: p, pid: pid, tid: pid, what: own, fd: -1}}
}

// SetRoot sets the parent directory of all entries. It is called before the first lookup.
func (p *Processes) SetRoot(root fs.Directory) { p.root = root }

// Lookup returns the entry with a name, or nil. The ID of a thread leads to the directory of its process, which a listing
// does not show.
func (p *Processes) Lookup(name string) fs.Node {
	switch name {
	case selfName, threadName:
		return selfLink{p, name == threadName}
	}
	if id, ok := decimal(name); ok {
		if of := p.Source.Process(id); of != nil {
			d := p.directory(of.PID())
			d.tid = id
			return d
		}
	}
	return nil
}

// NameOf returns the name of the directory of a process.
func (p *Processes) NameOf(child fs.Directory) (string, bool) {
	d, ok := child.(dirNode)
	if !ok || d.in != p || d.what != own || d.thread {
		return "", false
	}
	return strconv.Itoa(d.tid), true
}

// Read yields the entries after a cursor, as fs.Directory.
func (p *Processes) Read(cursor uint64, yield func(fs.Entry) bool) {
	for _, pid := range p.Source.Processes() {
		if uint64(pid) < cursor {
			continue
		}
		n := p.directory(pid)
		if !yield(fs.Entry{Name: strconv.Itoa(pid), Inode: n.inode(), Type: fs.Dir, Cursor: uint64(pid) + 1}) {
			return
		}
	}
	for i, name := range [...]string{selfName, threadName} {
		if at := uint64(selfCursor + i); at >= cursor {
			if !yield(fs.Entry{Name: name, Inode: at, Type: fs.Symlink, Cursor: at + 1}) {
				return
			}
		}
	}
}
