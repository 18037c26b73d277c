package fs

import "loam/abi/linux"

// File events for watchers (inotify). An event is delivered after the operation has completed, on the
// goroutine that made the call. Without a watcher, an operation does no extra work.

// Event is a kind of file event, with the bits of inotify(7).
type Event uint32

// Events. Events of the first group concern a file, and are reported to watches on the file and on its
// directory. The second group concerns a name in a directory. Events of the third group are
// reported to watches on the file only.
const (
	Accessed      Event = linux.IN_ACCESS
	Modified      Event = linux.IN_MODIFY
	AttrChanged   Event = linux.IN_ATTRIB
	ClosedWritten Event = linux.IN_CLOSE_WRITE
	ClosedRead    Event = linux.IN_CLOSE_NOWRITE
	Opened        Event = linux.IN_OPEN

	MovedFrom Event = linux.IN_MOVED_FROM
	MovedTo   Event = linux.IN_MOVED_TO
	Created   Event = linux.IN_CREATE
	Removed   Event = linux.IN_DELETE

	RemovedSelf Event = linux.IN_DELETE_SELF
	MovedSelf   Event = linux.IN_MOVE_SELF
)

// Notice describes an event. Dir and Name are a name that Node has, or had.
type Notice struct {
	Event  Event
	Node   Node
	Dir    Directory // nil: unknown
	Name   string
	Cookie uint32 // the same in a MovedFrom and its MovedTo
}

// Watcher receives events. Its methods must not call the tree.
type Watcher interface {
	Happened(Notice)
	// Watches reports whether the watcher needs the events of the files in a directory. Without the need, a Notice may lack
	// Dir and Name.
	Watches(dir Node) bool
}

// Named is a Node that knows the newest name of its file.
type Named interface {
	Node
	// Name returns the directory and the name; nil if the file has no name left.
	Name() (Directory, string)
}

// Lasting is a Node whose file lives on after its last name is removed, for as long as it is open. With PathOnly, its method
// Open returns a handle that only keeps the file, or nil if the node itself keeps it.
type Lasting interface {
	Node
	// InUse reports whether the file has open handles.
	InUse() bool
}

// Watch reports all events to w from now on; nil stops reporting.
func (t *Tree) Watch(w Watcher) {
	if w == nil {
		t.watcher.Store(nil)
		return
	}
	t.watcher.Store(&w)
}

// notice returns the watcher, and the notice of an event of a file. The notice has the file's newest name if the node knows it.
// Without a watcher, w is nil.
func (t *Tree) notice(n Node, e Event) (w Watcher, notice Notice) {
	p := t.watcher.Load()
	if p == nil {
		return nil, Notice{}
	}
	notice = Notice{Event: e, Node: n}
	if n, ok := n.(Named); ok {
		notice.Dir, notice.Name = n.Name()
	}
	return *p, notice
}

// notify reports an event of a file.
func (t *Tree) notify(n Node, e Event) {
	if w, notice := t.notice(n, e); w != nil {
		w.Happened(notice)
	}
}

// notify reports an event of the open file.
func (o *Opening) notify(e Event) {
	if o.tree.watcher.Load() != nil {
		o.report(e)
	}
}

// report reports an event of the open file, with the newest name of the file, or the name at which it was opened. The name of
// a mount point is not a name of the root of the mount.
func (o *Opening) report(e Event) {
	w, notice := o.tree.notice(o.place.Node, e)
	if w == nil {
		return
	}
	if notice.Dir == nil && o.from.dir.mount == o.place.mount && w.Watches(o.from.dir.Node) {
		if dir := o.found(); dir != nil {
			notice.Dir, notice.Name = dir, o.from.name
		}
	}
	w.Happened(notice)
}

// notifyName reports an event of a name in a directory.
func (t *Tree) notifyName(dir Directory, name string, n Node, e Event) {
	if w := t.watcher.Load(); w != nil {
		(*w).Happened(Notice{Event: e, Node: n, Dir: dir, Name: name})
	}
}

// notifyLinks reports a changed link count. Directories are not reported.
func (t *Tree) notifyLinks(n Node) {
	if _, isDir := n.(Directory); !isDir {
		t.notifyName(nil, "", n, AttrChanged)
	}
}

// notifyRemoved reports a removed name, and the removal of the file if that was its last name.
func (t *Tree) notifyRemoved(dir Directory, name string, n Node) {
	if t.watcher.Load() == nil {
		return
	}
	t.notifyLinks(n)
	t.notifyName(dir, name, n, Removed)
	t.notifyGone(n)
}

// notifyGone reports the removal of a file that has neither name nor handle left.
func (t *Tree) notifyGone(n Node) {
	if l, ok := n.(Lasting); ok && l.InUse() {
		return
	}
	if a := n.Attr(); a.Mode.Type() == Dir || a.Links == 0 {
		t.notify(n, RemovedSelf)
	}
}

// notifyClosed reports the removal of a file when its last handle is closed.
func (t *Tree) notifyClosed(n Node) {
	if t.watcher.Load() == nil {
		return
	}
	if _, ok := n.(Lasting); ok {
		t.notifyGone(n)
	}
}

// notifyMoved reports a rename. The file that was at the new name, if any, has been replaced or
// exchanged.
func (t *Tree) notifyMoved(from, to target, dir, into Directory, flags RenameFlags) {
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
		t.notifyLinks(to.place.Node)
		t.notifyGone(to.place.Node)
	}
}
