// Package mqueue implements POSIX message queues (mq_overview(7)): queues with names, messages with priorities, limits for each
// user, and one notification for each queue.
//
// A State holds all queues of a system, under one lock. A File is an open queue: it never blocks, as every file.File. Messages are
// copied to the queue and from it, so the memory that a user's queues may use is bounded by their limits, which are
// charged when a queue is created (RLIMIT_MSGQUEUE).
package mqueue

import (
	"fmt"
	"slices"
	"sort"
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Limits of /proc/sys/fs/mqueue: Linux's defaults, which cannot be changed. A caller with CAP_SYS_RESOURCE may exceed them up to the
// hard limits.
const (
	MaxQueues   = 256
	MaxMessages = 10
	MaxSize     = 8192

	HardMessages = 65536
	HardSize     = 16 << 20

	Priorities = 32768 // a priority is from 0 to Priorities-1
	maxName    = 255
)

// Files returns the files of /proc/sys/fs/mqueue, by path below /proc.
func Files() map[string]func() string {
	files := map[string]func() string{}
	for name, value := range map[string]int{
		"queues_max": MaxQueues, "msg_max": MaxMessages, "msgsize_max": MaxSize, "msg_default": MaxMessages, "msgsize_default": MaxSize,
	} {
		files["sys/fs/mqueue/"+name] = func() string { return fmt.Sprintln(value) }
	}
	return files
}

// Attributes are the limits of a queue.
type Attributes struct {
	Messages int64 // maximum number of messages
	Size     int64 // maximum size of a message in bytes
}

// Message is a message with its priority.
type Message struct {
	Priority uint32
	Data     []byte
}

// Creator describes the caller that creates a queue.
type Creator struct {
	UID, GID   uint32
	Mode       fs.Mode
	Privileged bool   // the caller has CAP_SYS_RESOURCE
	Limit      uint64 // RLIMIT_MSGQUEUE in bytes
	Now        fs.Time
}

// State holds all queues of a system. The zero value has no queues.
type State struct {
	mu    sync.Mutex // guards the fields below, and the fields of the queues
	names map[string]*Queue
	used  map[uint32]uint64 // bytes charged to each user
	count int
}

// Queue is a message queue. It lives until it has neither a name nor an open File.
type Queue struct {
	Attributes
	state    *State
	attr     fs.Attr
	named    bool
	charged  uint64
	messages []Message // sorted by descending priority, then by age
	bytes    int
	files    []*File // open files of the queue; a change replaces the slice
	waiting  int     // number of receivers that wait for a message
	notify   *Notification
}

// Notification is a request to be notified of the next message in an empty queue (mq_notify(3)).
type Notification struct {
	PID    int32
	Signal int
	// Deliver is called once, without a lock, with the sender of the message.
	Deliver func(pid int32, uid uint32)
	// Removed, if not nil, is called if the request ends without a message.
	Removed func()
}

// checkName checks a name without its slash. Errors: EACCES, ENAMETOOLONG.
func checkName(name string) linux.Errno {
	switch {
	case name == "":
		return linux.ENOENT
	case len(name) > maxName:
		return linux.ENAMETOOLONG
	case name == "." || name == ".." || slices.Contains([]byte(name), '/'):
		return linux.EACCES
	}
	return 0
}

// Open finds a queue, or creates one if flags has O_CREAT. attributes is nil for the
// default. may is a function that reports whether the caller is allowed to open an
// existing queue for the access mode in flags. Errors: EACCES, EEXIST, EINVAL, EMFILE,
// ENAMETOOLONG, ENOENT, ENOSPC.
func (s *State) Open(name string, flags int, attributes *Attributes, c Creator, may func(fs.Attr) bool) (*File, linux.Errno) {
	if errno := checkName(name); errno != 0 {
		return nil, errno
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.names[name]
	switch {
	case q == nil && flags&linux.O_CREAT == 0:
		return nil, linux.ENOENT
	case q == nil:
		var errno linux.Errno
		if q, errno = s.create(name, attributes, c); errno != 0 {
			return nil, errno
		}
	case flags&linux.O_CREAT != 0 && flags&linux.O_EXCL != 0:
		return nil, linux.EEXIST
	case !may(q.attr):
		return nil, linux.EACCES
	}
	f := &File{q: q, name: name, flags: flags & linux.O_ACCMODE}
	q.files = append(slices.Clip(slices.Clone(q.files)), f)
	return f, 0
}

// create adds a queue. The caller holds mu.
func (s *State) create(name string, attributes *Attributes, c Creator) (*Queue, linux.Errno) {
	a := Attributes{MaxMessages, MaxSize}
	if attributes != nil {
		a = *attributes
	}
	most := Attributes{MaxMessages, MaxSize}
	if c.Privileged {
		most = Attributes{HardMessages, HardSize}
	}
	charge := a.charge()
	switch {
	case s.count >= MaxQueues && !c.Privileged:
		return nil, linux.ENOSPC
	case a.Messages <= 0 || a.Size <= 0 || a.Messages > most.Messages || a.Size > most.Size:
		return nil, linux.EINVAL
	case s.used[c.UID]+charge > c.Limit:
		return nil, linux.EMFILE
	}
	if s.names == nil {
		s.names, s.used = map[string]*Queue{}, map[uint32]uint64{}
	}
	q := &Queue{Attributes: a, state: s, named: true, charged: charge, attr: fs.Attr{
		Mode: fs.Regular | c.Mode&0o7777, UID: c.UID, GID: c.GID, Links: 1, Size: textSize, BlockSize: 4096,
		Access: c.Now, Modify: c.Now, Status: c.Now,
	}}
	s.names[name] = q
	s.used[c.UID] += charge
	s.count++
	return q, 0
}

// charge returns the number of bytes that a queue counts for RLIMIT_MSGQUEUE (getrlimit(2)): the data of the maximum number
// of messages, and a descriptor for each.
func (a Attributes) charge() uint64 {
	const message, node = 48, 48 // sizes of struct msg_msg and struct posix_msg_tree_node of Linux in bytes
	return uint64(a.Messages)*(uint64(a.Size)+message) + uint64(min(a.Messages, Priorities))*node
}

// Unlink removes a name. may is a function that reports whether the caller is allowed to
// remove it. Errors: ENOENT, EACCES, ENAMETOOLONG.
func (s *State) Unlink(name string, may func(fs.Attr) bool) linux.Errno {
	if errno := checkName(name); errno != 0 {
		return errno
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.names[name]
	switch {
	case q == nil:
		return linux.ENOENT
	case !may(q.attr):
		return linux.EACCES
	}
	delete(s.names, name)
	s.count--
	q.named, q.attr.Links = false, 0
	q.drop()
	return 0
}

// drop ends the charge of a queue that has neither a name nor an open file. The caller holds mu.
func (q *Queue) drop() {
	if q.named || len(q.files) > 0 {
		return
	}
	s := q.state
	if s.used[q.attr.UID] -= q.charged; s.used[q.attr.UID] == 0 {
		delete(s.used, q.attr.UID)
	}
	q.charged, q.messages = 0, nil
}

// put adds a message. The caller holds mu. Errors: EMSGSIZE, EAGAIN if the queue is full.
func (q *Queue) put(m Message) linux.Errno {
	switch {
	case int64(len(m.Data)) > q.Size:
		return linux.EMSGSIZE
	case int64(len(q.messages)) >= q.Messages:
		return linux.EAGAIN
	}
	at := sort.Search(len(q.messages), func(i int) bool { return q.messages[i].Priority < m.Priority })
	q.messages = slices.Insert(q.messages, at, m)
	q.bytes += len(m.Data)
	return 0
}

// take removes the oldest message of the highest priority. The caller holds mu. Errors: EAGAIN if the queue is empty.
func (q *Queue) take() (Message, linux.Errno) {
	if len(q.messages) == 0 {
		return Message{}, linux.EAGAIN
	}
	m := q.messages[0]
	q.messages = slices.Delete(q.messages, 0, 1)
	q.bytes -= len(m.Data)
	return m, 0
}

// report reports events to all files of the queue. The caller does not hold mu.
func report(files []*File, e file.Events) {
	for _, f := range files {
		f.waiters.Notify(e)
	}
}
