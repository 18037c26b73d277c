package posix

import (
	"encoding/binary"
	"slices"
	"sync"
	"syscall"

	"loam/fs"
)

// inotify is an instance of inotify(7): the files and directories that it watches, and what
// has happened to them and was not read yet.
type inotify struct {
	p *Process
	q waitQueue

	mu      sync.Mutex // a leaf; guards what follows
	watches map[fs.Node]*inotifyWatch
	last    int32    // the number of the newest watch
	waiting [][]byte // as they are read
	bytes   int      // of waiting
}

type inotifyWatch struct {
	number int32
	mask   uint32 // with what may stand beside the events
}

const (
	// maxQueued is how many events wait at the most (max_queued_events of proc(5)).
	maxQueued = 16384

	inotifyHeader = 16 // struct inotify_event without its name, and what a name is padded to

	ofFile = uint32(fs.Accessed | fs.Modified | fs.AttrChanged | fs.ClosedWritten | fs.ClosedRead | fs.Opened)
	ofName = uint32(fs.MovedFrom | fs.MovedTo | fs.Created | fs.Removed)
	ofSelf = uint32(fs.RemovedSelf | fs.MovedSelf)
)

// watchers are the instances that there are. The tree tells them while there are any.
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

// change replaces the list, and has the tree tell it.
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

func (i *inotify) queue() *waitQueue { return &i.q }

func (i *inotify) mode() uint32 { return 0o600 }

func (i *inotify) write([]byte) (int, Errno) { return 0, syscall.EBADF }

func (i *inotify) events() Events {
	if i.buffered() > 0 {
		return PollIn
	}
	return 0
}

func (i *inotify) buffered() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.bytes
}

func (i *inotify) close() {
	i.p.watchers.change(i.p.view.Load().Tree, func(l []*inotify) []*inotify {
		return slices.DeleteFunc(l, func(o *inotify) bool { return o == i })
	})
}

// read takes as many whole events as fit. Errors: EAGAIN, EINVAL if not even one does.
func (i *inotify) read(b []byte) (int, Errno) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.waiting) == 0 {
		return 0, syscall.EAGAIN
	}
	n := 0
	for len(i.waiting) > 0 && n+len(i.waiting[0]) <= len(b) {
		n += copy(b[n:], i.waiting[0])
		i.waiting = i.waiting[1:]
	}
	if n == 0 {
		return 0, syscall.EINVAL
	}
	i.bytes -= n
	return n, 0
}

// happened tells of what is watched.
func (i *inotify) happened(n fs.Notice) {
	i.mu.Lock()
	told := false
	e := uint32(n.Event)
	flags := uint32(0)
	if _, ok := n.Node.(fs.Directory); ok {
		flags = syscall.IN_ISDIR
	}
	if n.Dir != nil && e&(ofFile|ofName) != 0 {
		told = i.tell(n.Dir, e, flags, n.Cookie, n.Name)
	}
	if e&(ofFile|ofSelf) != 0 {
		told = i.tell(n.Node, e, flags, 0, "") || told
	}
	if w := i.watches[n.Node]; w != nil && n.Event == fs.RemovedSelf {
		i.forget(n.Node, w)
		told = true
	}
	i.mu.Unlock()
	if told {
		i.q.tell(PollIn)
	}
}

// tell queues an event for the watch of a file, if it asks for that.
func (i *inotify) tell(of fs.Node, e, flags, cookie uint32, name string) bool {
	w := i.watches[of]
	if w == nil || w.mask&e == 0 {
		return false
	}
	i.put(w.number, e|flags, cookie, name)
	if w.mask&syscall.IN_ONESHOT != 0 {
		i.forget(of, w)
	}
	return true
}

// forget ends a watch.
func (i *inotify) forget(n fs.Node, w *inotifyWatch) {
	delete(i.watches, n)
	i.put(w.number, syscall.IN_IGNORED, 0, "")
}

// put queues an event, unless it is the same as the one before it.
func (i *inotify) put(watch int32, mask, cookie uint32, name string) {
	switch {
	case len(i.waiting) > maxQueued:
		return
	case len(i.waiting) == maxQueued:
		watch, mask, cookie, name = -1, syscall.IN_Q_OVERFLOW, 0, ""
	}
	padded := 0
	if name != "" {
		padded = (len(name) + inotifyHeader) &^ (inotifyHeader - 1) // with a NUL
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

// InotifyInit is inotify_init1(2).
func (p *Process) InotifyInit(flags int) (int, Errno) {
	if flags&^(syscall.IN_NONBLOCK|syscall.IN_CLOEXEC) != 0 {
		return -1, syscall.EINVAL
	}
	i := &inotify{p: p, watches: map[fs.Node]*inotifyWatch{}}
	p.watchers.change(p.view.Load().Tree, func(l []*inotify) []*inotify { return append(l, i) })
	return p.installWith(i, flags&syscall.O_NONBLOCK|syscall.O_RDONLY, flags&syscall.IN_CLOEXEC != 0)
}

// inotify finds an instance. Errors: EBADF, EINVAL.
func (p *Process) inotify(fd int) (*inotify, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, errno
	}
	i, ok := o.file.(*inotify)
	if !ok {
		return nil, syscall.EINVAL
	}
	return i, 0
}

// InotifyAddWatch is inotify_add_watch(2).
func (p *Process) InotifyAddWatch(fd int, path string, mask uint32) (int, Errno) {
	i, errno := p.inotify(fd)
	if errno != 0 {
		return -1, errno
	}
	if mask&(ofFile|ofName|ofSelf) == 0 || mask&syscall.IN_MASK_ADD != 0 && mask&inMaskCreate != 0 {
		return -1, syscall.EINVAL
	}
	v, place, errno := p.lookup(atFDCWD, path, mask&syscall.IN_DONT_FOLLOW == 0, false)
	if errno != 0 {
		return -1, errno
	}
	if err := v.Access(place, fs.ToRead); err != nil {
		return -1, toErrno(err)
	}
	if _, ok := place.Node.(fs.Directory); !ok && mask&syscall.IN_ONLYDIR != 0 {
		return -1, syscall.ENOTDIR
	}
	return i.add(place.Node, mask)
}

// inMaskCreate is IN_MASK_CREATE.
const inMaskCreate = 0x10000000

// add makes a watch, or changes the one that there is.
func (i *inotify) add(n fs.Node, mask uint32) (int, Errno) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := i.watches[n]
	switch {
	case w == nil:
		i.last++
		w = &inotifyWatch{number: i.last}
		i.watches[n] = w
	case mask&inMaskCreate != 0:
		return -1, syscall.EEXIST
	case mask&syscall.IN_MASK_ADD != 0:
		mask |= w.mask
	}
	w.mask = mask
	return int(w.number), 0
}

// InotifyRmWatch is inotify_rm_watch(2).
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
		return syscall.EINVAL
	}
	i.q.tell(PollIn)
	return 0
}
