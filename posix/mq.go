package posix

import (
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
	"loam/posix/mqueue"
	"loam/posix/netlink"
)

// POSIX message queues (mq_overview(7)). Package posix/mqueue implements the queues.

// MqOpen implements mq_open(2). The name has no slash. attributes is nil for the default. Errors: EACCES, EEXIST, EINVAL, EMFILE,
// ENAMETOOLONG, ENOENT, ENOSPC.
func (p *Process) MqOpen(name string, flags int, mode uint32, attributes *mqueue.Attributes) (int, Errno) {
	v := p.sight()
	wish := [...]fs.Wish{linux.O_RDONLY: fs.ToRead, linux.O_WRONLY: fs.ToWrite, linux.O_RDWR: fs.ToRead | fs.ToWrite}
	access := flags & linux.O_ACCMODE
	if access == linux.O_ACCMODE {
		return -1, linux.EINVAL
	}
	who := p.Identity()
	f, errno := p.queues.Open(name, flags, attributes, mqueue.Creator{
		UID: who.FSUID, GID: who.FSGID, Mode: fs.Mode(mode) & fs.Permissions &^ v.Umask, Privileged: p.may(linux.CAP_SYS_RESOURCE),
		Limit: p.mostQueued(), Now: fs.Tick(time.Now()),
	}, func(a fs.Attr) bool { return v.Who.May(a, wish[access]) })
	if errno != 0 {
		return -1, errno
	}
	return p.installWith(f, flags&(linux.O_ACCMODE|linux.O_NONBLOCK), true) // message queue descriptors always have FD_CLOEXEC
}

// MqUnlink implements mq_unlink(2). The permissions are checked as for a file in a directory with the sticky bit. Errors: ENOENT,
// EACCES, ENAMETOOLONG; EPERM for a queue of another user.
func (p *Process) MqUnlink(name string) Errno {
	who, denied := p.Identity(), false
	errno := p.queues.Unlink(name, func(a fs.Attr) bool {
		denied = a.UID != who.FSUID && !p.may(linux.CAP_FOWNER)
		return !denied
	})
	if denied {
		return linux.EPERM
	}
	return errno
}

// messageQueue returns the description and the file of a message queue. Errors: EBADF, also for another file.
func (p *Process) messageQueue(fd int) (*file.Description, *mqueue.File, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return nil, nil, errno
	}
	f, ok := o.File.(*mqueue.File)
	if !ok {
		return nil, nil, linux.EBADF
	}
	return o, f, 0
}

// MqSend implements mq_timedsend(2). A zero deadline means no deadline. Errors: EINVAL, EBADF, EMSGSIZE, EAGAIN, ETIMEDOUT,
// EINTR.
func (p *Process) MqSend(fd int, data []byte, priority uint32, deadline time.Time) Errno {
	if priority >= mqueue.Priorities {
		return linux.EINVAL
	}
	o, f, errno := p.messageQueue(fd)
	if errno != 0 {
		return errno
	}
	who := p.Identity()
	m := mqueue.Message{Priority: priority, Data: data}
	return p.untilReady(o, deadline, func() Errno { return f.Send(m, p.credentials.PID, who.UID) })
}

// MqSize returns the maximum size of a message of a queue in bytes. Errors: EBADF.
func (p *Process) MqSize(fd int) (uint64, Errno) {
	_, f, errno := p.messageQueue(fd)
	if errno != 0 {
		return 0, errno
	}
	return uint64(f.Limits().Size), 0
}

// MqReceive implements mq_timedreceive(2) for a buffer of size bytes. Errors: EBADF, EMSGSIZE, EAGAIN, ETIMEDOUT, EINTR.
func (p *Process) MqReceive(fd int, size uint64, deadline time.Time) (m mqueue.Message, errno Errno) {
	o, f, errno := p.messageQueue(fd)
	if errno != 0 {
		return m, errno
	}
	receive := func() Errno {
		var errno Errno
		m, errno = f.Receive(size)
		return errno
	}
	if errno = receive(); errno != linux.EAGAIN || o.Nonblocking() {
		return m, errno
	}
	f.Block(1)
	defer f.Block(-1)
	return m, p.untilReady(o, deadline, receive)
}

// untilReady calls the function try repeatedly until the result is not EAGAIN, and waits
// for the queue in between. Errors: those of try, ETIMEDOUT, EINTR.
func (p *Process) untilReady(o *file.Description, deadline time.Time, try func() Errno) Errno {
	errno := try()
	if errno != linux.EAGAIN || o.Nonblocking() {
		return errno
	}
	var most time.Duration
	if !deadline.IsZero() {
		if most = time.Until(deadline); most <= 0 {
			return linux.ETIMEDOUT
		}
	}
	s := p.newSleeper(o.Queue(), most)
	defer s.Leave()
	for {
		if errno := try(); errno != linux.EAGAIN {
			return errno
		}
		switch errno := s.Sleep(); errno {
		case 0:
		case linux.EAGAIN:
			return linux.ETIMEDOUT
		default:
			return errno
		}
	}
}

// MqAttributes are the attributes of a message queue descriptor (struct mq_attr).
type MqAttributes struct{ Flags, MaxMessages, MessageSize, Messages int64 }

// MqGetSetAttr implements mq_getsetattr(2). It returns the attributes before the change; set is nil for no change. Errors: EBADF,
// EINVAL for flags other than O_NONBLOCK.
func (p *Process) MqGetSetAttr(fd int, set *MqAttributes) (old MqAttributes, errno Errno) {
	if set != nil && set.Flags&^linux.O_NONBLOCK != 0 {
		return old, linux.EINVAL
	}
	o, f, errno := p.messageQueue(fd)
	if errno != 0 {
		return old, errno
	}
	l := f.Limits()
	old = MqAttributes{int64(o.Flags.Load()) & linux.O_NONBLOCK, l.Messages, l.Size, int64(f.Len())}
	if set != nil {
		o.SetNonblocking(set.Flags&linux.O_NONBLOCK != 0)
	}
	return old, 0
}

// MqEvent is a request of mq_notify(2) (struct sigevent).
type MqEvent struct {
	Notify int // SIGEV_SIGNAL, SIGEV_NONE or SIGEV_THREAD
	Signal int // a signal number; for SIGEV_THREAD, the descriptor of a netlink socket
	Value  uint64
	Cookie []byte // for SIGEV_THREAD: the message sent to the socket; its last byte is set to the reason
}

// Values of the last byte of a cookie: the reason of the message (linux/mqueue.h).
const (
	notifyWokenUp = 1
	notifyRemoved = 2
	// cookieSize is NOTIFY_COOKIE_LEN.
	cookieSize = 32
)

// Informer sends signals with a siginfo to the process of a thread. A Member implements it if its signals can have a
// siginfo.
type Informer interface {
	SendInfo(signal int, code int32, value uint64, pid int32, uid uint32)
}

// codeQueue is SI_MESGQ: si_code of a signal from a message queue.
const codeQueue = -3

// MqNotify implements mq_notify(2). A nil event removes the request of the process. Errors: EBADF, EBUSY, EINVAL, ENOTSOCK.
func (p *Process) MqNotify(fd int, e *MqEvent) Errno {
	const last = 64
	if e != nil {
		known := e.Notify == linux.SIGEV_SIGNAL || e.Notify == linux.SIGEV_NONE || e.Notify == linux.SIGEV_THREAD
		if !known || e.Notify == linux.SIGEV_SIGNAL && (e.Signal < 0 || e.Signal > last) {
			return linux.EINVAL
		}
	}
	n := &mqueue.Notification{PID: p.credentials.PID, Deliver: func(int32, uint32) {}}
	if e != nil && e.Notify == linux.SIGEV_THREAD {
		if errno := p.notifySocket(n, e); errno != 0 {
			return errno
		}
	}
	_, f, errno := p.messageQueue(fd)
	switch {
	case errno != 0:
		return errno
	case e == nil:
		f.Forget(p.credentials.PID)
		return 0
	}
	if e.Notify == linux.SIGEV_SIGNAL {
		n.Signal = e.Signal
		n.Deliver = func(pid int32, uid uint32) {
			switch to, ok := p.member.(Informer); {
			case e.Signal == 0:
			case ok:
				to.SendInfo(e.Signal, codeQueue, e.Value, pid, uid)
			default:
				p.job().SignalProcess(p.credentials.PID, e.Signal)
			}
		}
	}
	return f.Notify(n)
}

// notifySocket makes a notification send the cookie of e to a netlink socket, which a thread of the C library reads. Errors:
// EBADF, ENOTSOCK, EINVAL.
func (p *Process) notifySocket(n *mqueue.Notification, e *MqEvent) Errno {
	_, s, errno := p.socket(e.Signal)
	if errno != 0 {
		return errno
	}
	to, ok := s.(*netlink.Socket)
	if !ok || len(e.Cookie) != cookieSize {
		return linux.EINVAL
	}
	send := func(what byte) {
		b := append([]byte(nil), e.Cookie...)
		b[cookieSize-1] = what
		to.Deliver(b)
	}
	n.Deliver = func(int32, uint32) { send(notifyWokenUp) }
	n.Removed = func() { send(notifyRemoved) }
	return 0
}
