package mqueue

import (
	"fmt"
	"slices"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// File is an open queue: the File of a message queue descriptor.
type File struct {
	q       *Queue
	name    string
	flags   int // access mode of open(2)
	waiters file.Queue
	offset  int // offset of read(2) in the text about the queue; guarded by State.mu
}

// textSize is the size of the text about a queue, and the file size that fstat(2) returns (FILENT_SIZE in ipc/mqueue.c of
// Linux).
const textSize = 80

func (f *File) Queue() *file.Queue              { return &f.waiters }
func (f *File) Mode() uint32                    { return uint32(f.Attr().Mode) }
func (f *File) Write([]byte) (int, linux.Errno) { return 0, linux.EINVAL }
func (f *File) Name() string                    { return "/" + f.name }
func (f *File) mayRead() bool                   { return f.flags != linux.O_WRONLY }
func (f *File) mayWrite() bool                  { return f.flags != linux.O_RDONLY }
func (f *File) locked() func()                  { f.q.state.mu.Lock(); return f.q.state.mu.Unlock }
func (f *File) Limits() Attributes              { return f.q.Attributes }
func (f *File) Same(g *File) bool               { return f.q == g.q }

// Attr returns the attributes of the queue as a file.
func (f *File) Attr() fs.Attr {
	defer f.locked()()
	return f.q.attr
}

// Len returns the number of messages.
func (f *File) Len() int {
	defer f.locked()()
	return len(f.q.messages)
}

// Events implements file.File.
func (f *File) Events() (e file.Events) {
	defer f.locked()()
	if len(f.q.messages) > 0 {
		e |= file.PollIn
	}
	if int64(len(f.q.messages)) < f.q.Messages {
		e |= file.PollOut
	}
	return e
}

// Read returns a line of text about the queue (mq_overview(7)).
func (f *File) Read(b []byte) (int, linux.Errno) {
	defer f.locked()()
	signal, pid, kind := 0, int32(0), 0
	if n := f.q.notify; n != nil {
		pid, signal = n.PID, n.Signal
	}
	text := fmt.Sprintf("QSIZE:%-10d NOTIFY:%-5d SIGNO:%-5d NOTIFY_PID:%-6d\n", f.q.bytes, kind, signal, pid)
	n := copy(b, text[min(f.offset, len(text)):])
	f.offset += n
	return n, 0
}

// Send adds a message that a process of a user sends. Errors: EBADF, EMSGSIZE, EAGAIN if the queue is full.
func (f *File) Send(m Message, pid int32, uid uint32) linux.Errno {
	if !f.mayWrite() {
		return linux.EBADF
	}
	q := f.q
	q.state.mu.Lock()
	errno := q.put(m)
	var n *Notification
	if errno == 0 && len(q.messages) == 1 && q.waiting == 0 {
		n, q.notify = q.notify, nil
	}
	files := q.files
	q.state.mu.Unlock()
	if errno != 0 {
		return errno
	}
	report(files, file.PollIn)
	if n != nil {
		n.Deliver(pid, uid)
	}
	return 0
}

// Receive removes the next message, for a buffer of size bytes. Errors: EBADF, EMSGSIZE, EAGAIN if the queue is empty.
func (f *File) Receive(size uint64) (Message, linux.Errno) {
	q := f.q
	switch {
	case !f.mayRead():
		return Message{}, linux.EBADF
	case size < uint64(q.Size):
		return Message{}, linux.EMSGSIZE
	}
	q.state.mu.Lock()
	m, errno := q.take()
	files := q.files
	q.state.mu.Unlock()
	if errno == 0 {
		report(files, file.PollOut)
	}
	return m, errno
}

// Block adds n to the number of receivers that wait for a message. If it is not 0, a message is not reported by a
// notification.
func (f *File) Block(n int) {
	defer f.locked()()
	f.q.waiting += n
}

// Notify registers a request to be notified. Errors: EBUSY if the queue already has a request.
func (f *File) Notify(n *Notification) linux.Errno {
	defer f.locked()()
	if f.q.notify != nil {
		return linux.EBUSY
	}
	f.q.notify = n
	return 0
}

// Forget removes the request of a process.
func (f *File) Forget(pid int32) {
	q := f.q
	q.state.mu.Lock()
	n := q.notify
	if n != nil && n.PID == pid {
		q.notify = nil
	}
	q.state.mu.Unlock()
	if n != nil && n.PID == pid && n.Removed != nil {
		n.Removed()
	}
}

// Close implements file.File.
func (f *File) Close() {
	defer f.locked()()
	q := f.q
	q.files = slices.DeleteFunc(slices.Clone(q.files), func(o *File) bool { return o == f })
	q.drop()
}
