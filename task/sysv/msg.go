package sysv

import (
	"fmt"
	"slices"
	"strings"

	"loam/abi/linux"
)

// Queue is a message queue.
type Queue struct {
	Permissions
	Sent, Received, Changed  int64 // times of the last msgsnd, msgrcv and change, in seconds since 1970
	Bytes, Limit             uint64
	LastSender, LastReceiver int32 // process IDs of the last sender and receiver
	messages                 []Message
	waiting                  []*Waiter
}

// Message is a message with its type, which is above 0.
type Message struct {
	Type int64
	Text []byte
}

func (q *Queue) permissions() *Permissions { return &q.Permissions }

// Len returns the number of messages.
func (q *Queue) Len() int { return len(q.messages) }

// GetQueue implements msgget(2). Errors: ENOENT, EEXIST, EACCES, ENOSPC.
func (s *State) GetQueue(c Caller, key int32, flags int) (int32, linux.Errno) {
	return s.queues.get(c, key, flags, func(*Queue) linux.Errno { return 0 }, func(p Permissions) (*Queue, linux.Errno) {
		return &Queue{Permissions: p, Changed: c.Now, Limit: uint64(s.Limits.QueueBytes)}, 0
	})
}

// Queue returns the queue with an ID, if the caller may access it. Errors: EINVAL, EACCES.
func (s *State) Queue(c Caller, id int32, access uint32) (*Queue, linux.Errno) {
	q, errno := s.queues.find(id)
	if errno == 0 && !q.allows(c, access) {
		errno = linux.EACCES
	}
	return q, errno
}

// QueueAt returns the queue at an index of the table, if the caller may access it. Errors: EINVAL, EACCES.
func (s *State) QueueAt(c Caller, place int32, access uint32) (*Queue, linux.Errno) {
	q, errno := s.queues.at(place)
	if errno == 0 && !q.allows(c, access) {
		errno = linux.EACCES
	}
	return q, errno
}

// RemoveQueue implements IPC_RMID: waiting calls return EIDRM. Errors: EPERM.
func (s *State) RemoveQueue(c Caller, q *Queue) linux.Errno {
	if !q.owns(c) {
		return linux.EPERM
	}
	s.queues.remove(q)
	for _, w := range q.waiting {
		w.Done, w.Errno = true, linux.EIDRM
		w.Wake()
	}
	q.waiting = nil
	return 0
}

// SetLimit changes owner, mode and the maximum number of bytes of a queue (IPC_SET). Errors: EPERM.
func (s *State) SetLimit(q *Queue, c Caller, uid, gid, mode uint32, limit uint64) linux.Errno {
	if limit > uint64(s.Limits.QueueBytes) && !c.Has(linux.CAP_SYS_RESOURCE) {
		return linux.EPERM
	}
	if errno := q.Set(c, uid, gid, mode); errno != 0 {
		return errno
	}
	q.Limit, q.Changed = limit, c.Now
	q.wake()
	return 0
}

// wake wakes all threads that wait for the queue, which then try their operations again.
func (q *Queue) wake() {
	all := q.waiting
	q.waiting = nil
	for _, w := range all {
		w.Wake()
	}
}

// wait adds a waiter to the queue.
func (q *Queue) wait(wake func()) *Waiter {
	w := &Waiter{Wake: wake}
	q.waiting = append(q.waiting, w)
	return w
}

// CancelMessage removes the waiter of a thread that no longer waits for a queue.
func (s *State) CancelMessage(id int32, w *Waiter) {
	if q, errno := s.queues.find(id); errno == 0 {
		q.waiting = slices.DeleteFunc(q.waiting, func(o *Waiter) bool { return o == w })
	}
}

// Send implements msgsnd(2). If the queue is full, it returns a Waiter; when that is woken, the caller tries again. Errors:
// EINVAL, EACCES, EAGAIN.
func (s *State) Send(c Caller, id int32, m Message, flags int, wake func()) (*Waiter, linux.Errno) {
	if m.Type < 1 || len(m.Text) > s.Limits.Message {
		return nil, linux.EINVAL
	}
	q, errno := s.Queue(c, id, mayWrite)
	if errno != 0 {
		return nil, errno
	}
	if q.Bytes+uint64(len(m.Text)) > q.Limit || uint64(len(q.messages)) >= q.Limit {
		if flags&linux.IPC_NOWAIT != 0 {
			return nil, linux.EAGAIN
		}
		return q.wait(wake), 0
	}
	q.messages = append(q.messages, m)
	q.Bytes += uint64(len(m.Text))
	q.Sent, q.LastSender = c.Now, c.PID
	q.wake()
	return nil, 0
}

// Receive implements msgrcv(2) for a buffer of size bytes. If the queue has no message of the type, it returns a Waiter;
// when that is woken, the caller tries again. Errors: EINVAL, EACCES, E2BIG, ENOMSG.
func (s *State) Receive(c Caller, id int32, size uint64, kind int64, flags int, wake func()) (Message, *Waiter, linux.Errno) {
	var none Message
	copies := flags&linux.MSG_COPY != 0
	switch {
	case int64(size) < 0, copies && (flags&linux.MSG_EXCEPT != 0 || flags&linux.IPC_NOWAIT == 0):
		return none, nil, linux.EINVAL
	}
	q, errno := s.Queue(c, id, mayRead)
	if errno != 0 {
		return none, nil, errno
	}
	at := q.choose(kind, flags)
	if at < 0 {
		if flags&linux.IPC_NOWAIT != 0 {
			return none, nil, linux.ENOMSG
		}
		return none, q.wait(wake), 0
	}
	m := q.messages[at]
	if uint64(len(m.Text)) > size {
		if flags&linux.MSG_NOERROR == 0 {
			return none, nil, linux.E2BIG
		}
	}
	if !copies {
		q.messages = slices.Delete(q.messages, at, at+1)
		q.Bytes -= uint64(len(m.Text))
		q.Received, q.LastReceiver = c.Now, c.PID
		q.wake()
	}
	m.Text = m.Text[:min(uint64(len(m.Text)), size)]
	return m, nil, 0
}

// choose returns the index of the message for a receiver, or -1 if none has the requested type.
func (q *Queue) choose(kind int64, flags int) int {
	switch {
	case flags&linux.MSG_COPY != 0:
		if kind < 0 || kind >= int64(len(q.messages)) {
			return -1
		}
		return int(kind)
	case kind == 0:
		return min(len(q.messages), 1) - 1
	case kind > 0:
		except := flags&linux.MSG_EXCEPT != 0
		return slices.IndexFunc(q.messages, func(m Message) bool { return (m.Type == kind) != except })
	}
	best := -1
	for i, m := range q.messages {
		if (kind == -1<<63 || m.Type <= -kind) && (best < 0 || m.Type < q.messages[best].Type) {
			best = i
		}
	}
	return best
}

// QueueTotals returns the number of queues, of messages and of their bytes, and the highest index of the table in
// use.
func (s *State) QueueTotals() (count, messages int, bytes uint64, highest int32) {
	for _, q := range s.queues.all() {
		messages += len(q.messages)
		bytes += q.Bytes
	}
	return s.queues.count, messages, bytes, s.queues.highest()
}

// QueueText returns /proc/sysvipc/msg.
func (s *State) QueueText() string {
	var b strings.Builder
	b.WriteString("       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime      ctime\n")
	for _, q := range s.queues.all() {
		fmt.Fprintf(&b, "%10d %10d  %4o  %10d %10d %5d %5d %5d %5d %5d %5d %10d %10d %10d\n", q.Key, q.ID, q.Mode, q.Bytes,
			len(q.messages), q.LastSender, q.LastReceiver, q.UID, q.GID, q.CUID, q.CGID, q.Sent, q.Received, q.Changed)
	}
	return b.String()
}
