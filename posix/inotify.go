package posix

import (
	"encoding/binary"
	"slices"
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// inotify is an inotify instance (inotify(7)): its watches on files and directories, and the events
// that have not been read yet.
type inotify struct {
	p *Process
	q file.Queue

	mu      sync.Mutex // a leaf; guards the fields below
	watches map[fs.Node]*inotifyWatch
	last    int32    // watch descriptor of the newest watch
	waiting [][]byte // encoded events, oldest first
	bytes   int      // total size of waiting
}

type inotifyWatch struct {
	number int32
	mask   uint32 // requested events, and flags such as IN_ONESHOT
}

const (
	// maxQueued limits the number of queued events (max_queued_events of proc(5)).
	maxQueued = 16384

	inotifyHeader = 16 // size of struct inotify_event without the name; names are padded to multiples of it

	ofFile = uint32(fs.Accessed | fs.Modified | fs.AttrChanged | fs.ClosedWritten | fs.ClosedRead | fs.Opened)
	ofName = uint32(fs.MovedFrom | fs.MovedTo | fs.Created | fs.Removed)
	ofSelf = uint32(fs.RemovedSelf | fs.MovedSelf)
)

// watchers is the list of inotify instances. It is registered with the file tree while it is not empty.
type watchers struct {
	mu   sync.RWMutex
	list []*inotify
}

// Happened implements fs.Watcher.
func (w *watchers) Happened(n fs.Notice) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, i := range w.list {
		i.happened(n)
	}
}

// change replaces the list, and registers it with the tree or removes it.
func (w *watchers) change(t *fs.Tree, f func([]*inotify) []*inotify) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = f(w.list)
	if len(w.list) > 0 {
		t.Watch(w)
	} else {
		t.Watch(nil)
	}
}

func (i *inotify) Queue() *file.Queue { return &i.q }

func (i *inotify) Mode() uint32 { return 0o600 }

func (i *inotify) Write([]byte) (int, Errno) { return 0, linux.EBADF }

func (i *inotify) Events() Events {
	if i.Buffered() > 0 {
		return PollIn
	}
	return 0
}

func (i *inotify) Buffered() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.bytes
}

func (i *inotify) Close() {
	i.p.watchers.change(i.p.sight().Tree, func(l []*inotify) []*inotify {
		return slices.DeleteFunc(l, func(o *inotify) bool { return o == i })
	})
}

// Read returns as many whole events as fit. Errors: EAGAIN; EINVAL if the first event does not fit.
func (i *inotify) Read(b []byte) (int, Errno) {
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

// happened queues an event for the watches on its file and on its directory.
func (i *inotify) happened(n fs.Notice) {
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
		queued = i.enqueue(n.Node, e, flags, 0, "") || queued
	}
	if w := i.watches[n.Node]; w != nil && n.Event == fs.RemovedSelf {
		i.forget(n.Node, w)
		queued = true
	}
	i.mu.Unlock()
	if queued {
		i.q.Notify(PollIn)
	}
}

// enqueue queues an event if a watch on the file requests it, and reports whether it did.
func (i *inotify) enqueue(of fs.Node, e, flags, cookie uint32, name string) bool {
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
func (i *inotify) forget(n fs.Node, w *inotifyWatch) {
	delete(i.watches, n)
	i.put(w.number, linux.IN_IGNORED, 0, "")
}

// put queues an event unless it equals the previous one. When the queue is full, one IN_Q_OVERFLOW
// takes the place of all further events.
func (i *inotify) put(watch int32, mask, cookie uint32, name string) {
	switch {
	case len(i.waiting) > maxQueued:
		return
	case len(i.waiting) == maxQueued:
		watch, mask, cookie, name = -1, linux.IN_Q_OVERFLOW, 0, ""
	}
	padded := 0
	if name != "" {
		padded = (len(name) + inotifyHeader) &^ (inotifyHeader - 1) // with the terminating NUL
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

// InotifyInit implements inotify_init1(2). Errors: EINVAL, EMFILE.
func (p *Process) InotifyInit(flags int) (int, Errno) {
	if flags&^(linux.IN_NONBLOCK|linux.IN_CLOEXEC) != 0 {
		return -1, linux.EINVAL
	}
	i := &inotify{p: p, watches: map[fs.Node]*inotifyWatch{}}
	p.watchers.change(p.sight().Tree, func(l []*inotify) []*inotify { return append(l, i) })
	return p.installWith(i, flags&linux.O_NONBLOCK|linux.O_RDONLY, flags&linux.IN_CLOEXEC != 0)
}

// inotify returns the instance of fd. Errors: EBADF, EINVAL.
func (p *Process) inotify(fd int) (*inotify, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, errno
	}
	i, ok := o.File.(*inotify)
	if !ok {
		return nil, linux.EINVAL
	}
	return i, 0
}

// InotifyAddWatch implements inotify_add_watch(2). It returns the watch descriptor, which is the old
// one if the file is watched already. Errors: EBADF, EINVAL, EEXIST, EACCES, ENOTDIR, and those of
// path lookup.
func (p *Process) InotifyAddWatch(fd int, path string, mask uint32) (int, Errno) {
	i, errno := p.inotify(fd)
	if errno != 0 {
		return -1, errno
	}
	if mask&(ofFile|ofName|ofSelf) == 0 || mask&linux.IN_MASK_ADD != 0 && mask&linux.IN_MASK_CREATE != 0 {
		return -1, linux.EINVAL
	}
	v, place, errno := p.lookup(linux.AT_FDCWD, path, mask&linux.IN_DONT_FOLLOW == 0, false)
	if errno != 0 {
		return -1, errno
	}
	if err := v.Access(place, fs.ToRead); err != nil {
		return -1, file.ToErrno(err)
	}
	if _, ok := place.Node.(fs.Directory); !ok && mask&linux.IN_ONLYDIR != 0 {
		return -1, linux.ENOTDIR
	}
	return i.add(place.Node, mask)
}

// add adds a watch on a file, or changes the existing one. It returns the watch descriptor.
func (i *inotify) add(n fs.Node, mask uint32) (int, Errno) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := i.watches[n]
	switch {
	case w == nil:
		i.last++
		w = &inotifyWatch{number: i.last}
		i.watches[n] = w
	case mask&linux.IN_MASK_CREATE != 0:
		return -1, linux.EEXIST
	case mask&linux.IN_MASK_ADD != 0:
		mask |= w.mask
	}
	w.mask = mask
	return int(w.number), 0
}

// InotifyRmWatch implements inotify_rm_watch(2). Errors: EBADF, EINVAL.
func (p *Process) InotifyRmWatch(fd int, number int32) Errno {
	i, errno := p.inotify(fd)
	if errno != 0 {
		return errno
	}
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
	i.q.Notify(PollIn)
	return 0
}
