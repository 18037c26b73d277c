package event

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Inotify is an inotify instance (inotify(7)): its watches on files and directories, and the events
// that have not been read yet.
type Inotify struct {
	all    *Watchers
	tree   *fs.Tree
	of     *user
	queued int // largest number of queued events
	q      file.Queue

	mu      sync.Mutex // guards the fields below; no other lock is acquired while it is held
	watches map[fs.Node]*watch
	last    int32    // watch descriptor of the newest watch
	waiting [][]byte // encoded events, oldest first
	bytes   int      // total size of waiting in bytes
}

type watch struct {
	number int32
	device fs.Device // device of the file system with the file
	mask   uint32    // requested events, and flags such as IN_ONESHOT
}

const (
	inotifyHeader = 16 // size of struct inotify_event without the name, in bytes; the size of a name is a multiple of it

	ofFile = uint32(fs.Accessed | fs.Modified | fs.AttrChanged | fs.ClosedWritten | fs.ClosedRead | fs.Opened)
	ofName = uint32(fs.MovedFrom | fs.MovedTo | fs.Created | fs.Removed)
	ofSelf = uint32(fs.RemovedSelf | fs.MovedSelf)
)

// Watchers is the list of inotify instances. It is registered with the file tree while it is not empty.
type Watchers struct {
	// MostQueued, MostInstances and MostWatches are the settings of fs.inotify: the number of queued events of a new instance, and the numbers of
	// instances and watches of a user.
	MostQueued, MostInstances, MostWatches Most

	mu   sync.RWMutex
	list []*Inotify
}

// Most is the largest number of something. Its zero value is the default.
type Most struct{ changed atomic.Int64 } // the complement of the number; 0: the default

// Defaults of the settings.
const (
	defaultQueued = 16384
	unlimited     = 1<<31 - 1
)

func (m *Most) or(usual int64) int64 {
	if n := m.changed.Load(); n != 0 {
		return ^n
	}
	return usual
}

// Set changes the number.
func (m *Most) Set(n int64) { m.changed.Store(^n) }

// Limits returns the numbers.
func (w *Watchers) Limits() (queued, instances, watches int64) {
	return w.MostQueued.or(defaultQueued), w.MostInstances.or(unlimited), w.MostWatches.or(unlimited)
}

// user counts the watches of all instances of a user.
type user struct {
	id      uint32
	watches atomic.Int64
}

// New returns an instance of a user that watches files of a tree. Errors: EMFILE.
func (w *Watchers) New(t *fs.Tree, id uint32) (*Inotify, linux.Errno) {
	queued, most, _ := w.Limits()
	i := &Inotify{all: w, tree: t, of: &user{id: id}, queued: int(queued), watches: map[fs.Node]*watch{}}
	w.change(t, func(l []*Inotify) []*Inotify {
		for _, o := range l {
			if o.of.id == id {
				i.of = o.of
				most--
			}
		}
		if most > 0 {
			return append(l, i)
		}
		return l
	})
	if most <= 0 {
		return nil, linux.EMFILE
	}
	return i, 0
}

// Len returns the number of instances.
func (w *Watchers) Len() int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return len(w.list)
}

// Happened implements fs.Watcher.
func (w *Watchers) Happened(n fs.Notice) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, i := range w.list {
		i.happened(n)
	}
}

// Watches implements fs.Watcher.
func (w *Watchers) Watches(dir fs.Node) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return slices.ContainsFunc(w.list, func(i *Inotify) bool { return i.has(dir) })
}

// change replaces the list by the result of f. It registers the list with the file tree when the list gets its first
// instance, and removes the list from the tree when it becomes empty.
func (w *Watchers) change(t *fs.Tree, f func([]*Inotify) []*Inotify) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = f(w.list)
	if len(w.list) > 0 {
		t.Watch(w)
	} else {
		t.Watch(nil)
	}
}

// Name implements file.Named.
func (i *Inotify) Name() string { return "anon_inode:inotify" }

// mostDetails is the maximum number of watches that Details shows: each open file fdinfo keeps its text.
const mostDetails = 16384

// Details implements file.Detailed. The newest watch is first, as on Linux.
func (i *Inotify) Details() string {
	const shown = linux.IN_ALL_EVENTS | linux.IN_EXCL_UNLINK | linux.IN_ONESHOT
	type watched struct {
		watch
		node fs.Node
	}
	var all []watched
	i.mu.Lock()
	for n, w := range i.watches {
		all = append(all, watched{*w, n})
	}
	i.mu.Unlock()
	slices.SortFunc(all, func(a, b watched) int { return cmp.Compare(b.number, a.number) })
	var b strings.Builder
	for _, w := range all[:min(len(all), mostDetails)] { // an attribute may be a request to a server, so i.mu is not held
		device := w.device.Major<<20 | w.device.Minor
		fmt.Fprintf(&b, "inotify wd:%x ino:%x sdev:%x mask:%x ignored_mask:0 \n", w.number, w.node.Attr().Inode, device, w.mask&shown)
	}
	return b.String()
}

func (i *Inotify) Queue() *file.Queue { return &i.q }

func (i *Inotify) Mode() uint32 { return 0o600 }

func (i *Inotify) Write([]byte) (int, linux.Errno) { return 0, linux.EBADF }

func (i *Inotify) Events() file.Events {
	if i.Buffered() > 0 {
		return file.PollIn
	}
	return 0
}

// Held implements file.Holder.
func (i *Inotify) Held() int64 {
	const heapOfWatch, heapOfEvent = 256, 32 // estimates in bytes
	i.mu.Lock()
	defer i.mu.Unlock()
	return int64(len(i.watches)*heapOfWatch + len(i.waiting)*heapOfEvent + i.bytes)
}

// Buffered returns the size of the events that have not been read, for FIONREAD.
func (i *Inotify) Buffered() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.bytes
}

func (i *Inotify) Close() {
	i.mu.Lock()
	i.of.watches.Add(-int64(len(i.watches)))
	i.watches = map[fs.Node]*watch{}
	i.mu.Unlock()
	i.all.change(i.tree, func(l []*Inotify) []*Inotify {
		return slices.DeleteFunc(l, func(o *Inotify) bool { return o == i })
	})
}

// Read returns as many whole events as fit. Errors: EAGAIN; EINVAL if the first event does not fit.
func (i *Inotify) Read(b []byte) (int, linux.Errno) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.waiting) == 0 {
		return 0, linux.EAGAIN
	}
	n := 0
	for len(i.waiting) > 0 && n+len(i.waiting[0]) <= len(b) {
		n += copy(b[n:], i.waiting[0])
		i.waiting = i.waiting[1:]
	}
	if n == 0 {
		return 0, linux.EINVAL
	}
	i.bytes -= n
	return n, 0
}

// has reports whether the instance has a watch on a file.
func (i *Inotify) has(n fs.Node) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.watches[n] != nil
}

// happened queues a notice for the watches on its file and on the directory of the file.
func (i *Inotify) happened(n fs.Notice) {
	i.mu.Lock()
	queued := false
	e := uint32(n.Event)
	flags := uint32(0)
	if _, ok := n.Node.(fs.Directory); ok {
		flags = linux.IN_ISDIR
	}
	if n.Dir != nil && e&(ofFile|ofName) != 0 {
		queued = i.enqueue(n.Dir, e, flags, n.Cookie, n.Name)
	}
	if e&(ofFile|ofSelf) != 0 {
		if e&(linux.IN_DELETE_SELF|linux.IN_MOVE_SELF) != 0 {
			flags = 0 // as on Linux, only the other events have IN_ISDIR
		}
		queued = i.enqueue(n.Node, e, flags, 0, "") || queued
	}
	if w := i.watches[n.Node]; w != nil && n.Event == fs.RemovedSelf {
		i.forget(n.Node, w)
		queued = true
	}
	i.mu.Unlock()
	if queued {
		i.q.Notify(file.PollIn)
	}
}

// enqueue queues an event if a watch on the file requests it, and reports whether it did.
func (i *Inotify) enqueue(of fs.Node, e, flags, cookie uint32, name string) bool {
	w := i.watches[of]
	if w == nil || w.mask&e == 0 {
		return false
	}
	i.put(w.number, e|flags, cookie, name)
	if w.mask&linux.IN_ONESHOT != 0 {
		i.forget(of, w)
	}
	return true
}

// forget removes a watch and queues IN_IGNORED.
func (i *Inotify) forget(n fs.Node, w *watch) {
	delete(i.watches, n)
	i.of.watches.Add(-1)
	i.put(w.number, linux.IN_IGNORED, 0, "")
}

// put queues an event unless it equals the previous one. When the queue is full, one IN_Q_OVERFLOW
// takes the place of all further events.
func (i *Inotify) put(watch int32, mask, cookie uint32, name string) {
	switch {
	case len(i.waiting) > i.queued:
		return
	case len(i.waiting) == i.queued:
		watch, mask, cookie, name = -1, linux.IN_Q_OVERFLOW, 0, ""
	}
	padded := 0
	if name != "" {
		// the name with at least one NUL, padded to a multiple of inotifyHeader
		padded = (len(name) + inotifyHeader) &^ (inotifyHeader - 1)
	}
	b := make([]byte, inotifyHeader+padded)
	binary.NativeEndian.PutUint32(b, uint32(watch))
	binary.NativeEndian.PutUint32(b[4:], mask)
	binary.NativeEndian.PutUint32(b[8:], cookie)
	binary.NativeEndian.PutUint32(b[12:], uint32(padded))
	copy(b[inotifyHeader:], name)
	if k := len(i.waiting); k > 0 && slices.Equal(i.waiting[k-1], b) {
		return
	}
	i.waiting = append(i.waiting, b)
	i.bytes += len(b)
}

// ValidMask reports whether a mask has no flags that contradict each other.
func ValidMask(mask uint32) bool {
	return mask&linux.IN_MASK_ADD == 0 || mask&linux.IN_MASK_CREATE == 0
}

// Add adds a watch on a file of a device, or changes the existing one. It returns the watch descriptor. Errors: EEXIST; ENOSPC if
// the user has too many watches.
func (i *Inotify) Add(n fs.Node, device fs.Device, mask uint32) (int, linux.Errno) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := i.watches[n]
	switch {
	case w == nil:
		if _, _, most := i.all.Limits(); i.of.watches.Add(1) > most {
			i.of.watches.Add(-1)
			return -1, linux.ENOSPC
		}
		i.last++
		w = &watch{number: i.last, device: device}
		i.watches[n] = w
	case mask&linux.IN_MASK_CREATE != 0:
		return -1, linux.EEXIST
	case mask&linux.IN_MASK_ADD != 0:
		mask |= w.mask
	}
	w.mask = mask
	return int(w.number), 0
}

// Remove removes a watch. Errors: EINVAL if the instance has no watch with this number.
func (i *Inotify) Remove(number int32) linux.Errno {
	i.mu.Lock()
	found := false
	for n, w := range i.watches {
		if w.number == number {
			i.forget(n, w)
			found = true
		}
	}
	i.mu.Unlock()
	if !found {
		return linux.EINVAL
	}
	i.q.Notify(file.PollIn)
	return 0
}
