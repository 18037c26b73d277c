package fs

// What happens to files, told to whoever watches them. Everything is told after it has
// happened, and by nobody where nobody watches.

// Event says what has happened, in the bits of inotify(7).
type Event uint32

// Events. The first group is told of a file to those who watch it or its directory, the second
// of a name in a directory, the third of a file alone.
const (
	Accessed      Event = 0x1
	Modified      Event = 0x2
	AttrChanged   Event = 0x4
	ClosedWritten Event = 0x8
	ClosedRead    Event = 0x10
	Opened        Event = 0x20

	MovedFrom Event = 0x40
	MovedTo   Event = 0x80
	Created   Event = 0x100
	Removed   Event = 0x200

	RemovedSelf Event = 0x400
	MovedSelf   Event = 0x800
)

// Notice is one event of the file Node, which has, or had, a name in a directory.
type Notice struct {
	Event  Event
	Node   Node
	Dir    Directory // nil: not known
	Name   string
	Cookie uint32 // joins a MovedFrom to its MovedTo
}

// Watcher is told. It must not call the tree.
type Watcher interface{ Happened(Notice) }

// Named is a Node that knows a name of its file's: the newest.
type Named interface {
	Node
	// Name is the directory and the name there; nil if there is none any more.
	Name() (Directory, string)
}

// Lasting is a Node that outlives its last name for as long as it is open.
type Lasting interface {
	Node
	// InUse reports whether there are handles.
	InUse() bool
}

// Watch has everything told to w from now on; nil: to nobody.
func (t *Tree) Watch(w Watcher) {
	if w == nil {
		t.watcher.Store(nil)
		return
	}
	t.watcher.Store(&w)
}

// tell is for events of a file by whatever name.
func (t *Tree) tell(n Node, e Event) {
	w := t.watcher.Load()
	if w == nil {
		return
	}
	notice := Notice{Event: e, Node: n}
	if n, ok := n.(Named); ok {
		notice.Dir, notice.Name = n.Name()
	}
	(*w).Happened(notice)
}

// tellName is for events of a name.
func (t *Tree) tellName(dir Directory, name string, n Node, e Event) {
	if w := t.watcher.Load(); w != nil {
		(*w).Happened(Notice{Event: e, Node: n, Dir: dir, Name: name})
	}
}

// tellLinks is for a file that has one name more or less.
func (t *Tree) tellLinks(n Node) {
	if _, isDir := n.(Directory); !isDir {
		t.tellName(nil, "", n, AttrChanged)
	}
}

// tellRemoved is for a name that has gone, and for its file if that was the last.
func (t *Tree) tellRemoved(dir Directory, name string, n Node) {
	if t.watcher.Load() == nil {
		return
	}
	t.tellLinks(n)
	t.tellName(dir, name, n, Removed)
	t.tellGone(n)
}

// tellGone is for a file that may have lost its last name, or its last handle.
func (t *Tree) tellGone(n Node) {
	if l, ok := n.(Lasting); ok && l.InUse() {
		return
	}
	if a := n.Attr(); a.Mode.Type() == Dir || a.Links == 0 {
		t.tell(n, RemovedSelf)
	}
}

// tellClosed is for a file of which a handle has gone.
func (t *Tree) tellClosed(n Node) {
	if _, ok := n.(Lasting); ok && t.watcher.Load() != nil {
		t.tellGone(n)
	}
}

// tellMoved is for a file that has another name, where old was before, if there was one.
func (t *Tree) tellMoved(from, to target, dir, into Directory, flags RenameFlags) {
	w := t.watcher.Load()
	if w == nil || to.exists() && to.place == from.place {
		return
	}
	moved := func(n Node, dir Directory, name string, into Directory, newName string) {
		cookie := t.cookies.Add(1)
		(*w).Happened(Notice{MovedFrom, n, dir, name, cookie})
		(*w).Happened(Notice{MovedTo, n, into, newName, cookie})
		(*w).Happened(Notice{Event: MovedSelf, Node: n})
	}
	moved(from.place.Node, dir, from.name, into, to.name)
	switch {
	case !to.exists():
	case flags&RenameExchange != 0:
		moved(to.place.Node, into, to.name, dir, from.name)
	default:
		t.tellLinks(to.place.Node)
		t.tellGone(to.place.Node)
	}
}
