package ipc

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/sysv"
)

// Calls on System V message queues.

// typeSize is the size of the type that precedes the text of a message, in bytes.
const typeSize = 8

// msgsnd implements msgsnd(2).
func msgsnd(t task, a call.Args) (uint64, linux.Errno) {
	const bound = 16 << 20 // bounds the memory of a message
	limit := 0
	t.objects.Limits(func(l *sysv.Limits) { limit = l.Message })
	switch {
	case a.A3 > uint64(limit):
		return 0, linux.EINVAL
	case a.A3 > bound:
		return 0, linux.ENOMEM
	}
	b := make([]byte, typeSize+a.A3)
	if errno := t.Memory().Read(b[:typeSize], a.A2); errno != 0 {
		return 0, errno
	}
	m := sysv.Message{Type: int64(binary.LittleEndian.Uint64(b)), Text: b[typeSize:]}
	if m.Type < 1 {
		return 0, linux.EINVAL
	}
	if errno := t.Memory().Read(b[typeSize:], a.A2+typeSize); errno != 0 {
		return 0, errno
	}
	return 0, t.messages(int32(a.A1), func(s *sysv.State, c sysv.Caller, wake func()) (*sysv.Waiter, linux.Errno) {
		return s.Send(c, int32(a.A1), m, number(a.A4), wake)
	})
}

// messages tries an operation on a queue until it succeeds or fails, and waits after each try that cannot succeed yet.
func (t task) messages(id int32, try func(s *sysv.State, c sysv.Caller, wake func()) (*sysv.Waiter, linux.Errno)) linux.Errno {
	x := t.objects
	for {
		c := t.caller()
		ready := make(chan struct{}) // closed when the operation should be tried again
		x.mu.Lock()
		w, errno := try(x.state, c, func() { close(ready) })
		x.mu.Unlock()
		if w == nil {
			return errno
		}
		errno = t.Await(ready, forever)
		x.mu.Lock()
		x.state.CancelMessage(id, w)
		done, result := w.Done, w.Errno
		x.mu.Unlock()
		switch {
		case done:
			return result
		case errno != 0:
			return errno
		}
	}
}

// msgrcv implements msgrcv(2).
func msgrcv(t task, a call.Args) (uint64, linux.Errno) {
	var m sysv.Message
	errno := t.messages(int32(a.A1), func(s *sysv.State, c sysv.Caller, wake func()) (w *sysv.Waiter, errno linux.Errno) {
		m, w, errno = s.Receive(c, int32(a.A1), a.A3, int64(a.A4), number(a.A5), wake)
		return w, errno
	})
	if errno != 0 {
		return 0, errno
	}
	b := append(binary.LittleEndian.AppendUint64(nil, uint64(m.Type)), m.Text...)
	return uint64(len(m.Text)), t.Memory().Write(a.A2, b)
}

// msgctl implements msgctl(2).
func msgctl(t task, a call.Args) (uint64, linux.Errno) {
	command := number(a.A2)
	switch command {
	case linux.IPC_INFO, linux.MSG_INFO:
		return t.msgInfo(a.A3, command == linux.MSG_INFO)
	case linux.IPC_STAT, linux.MSG_STAT, linux.MSG_STAT_ANY:
		b := make([]byte, queueSize)
		id, errno := t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			q, errno := statted(c, a, command == linux.IPC_STAT, command == linux.MSG_STAT_ANY, s.Queue, s.QueueAt)
			if errno != 0 {
				return 0, errno
			}
			putPermissions(b, &q.Permissions)
			putWords(b[permissionsSize:], uint64(q.Sent), uint64(q.Received), uint64(q.Changed), q.Bytes, uint64(q.Len()), q.Limit,
				uint64(uint32(q.LastSender))|uint64(uint32(q.LastReceiver))<<32)
			if command == linux.IPC_STAT {
				return 0, 0
			}
			return uint64(q.ID), 0
		})
		if errno != 0 {
			return 0, errno
		}
		return id, t.Memory().Write(a.A3, b)
	case linux.IPC_SET:
		b, uid, gid, mode, errno := t.setPermissions(a.A3, queueSize)
		if errno != 0 {
			return 0, errno
		}
		const limitAt = 88
		limit := binary.LittleEndian.Uint64(b[limitAt:])
		return t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			q, errno := s.Queue(c, int32(a.A1), 0)
			if errno == 0 {
				errno = s.SetLimit(q, c, uid, gid, mode, limit)
			}
			return 0, errno
		})
	case linux.IPC_RMID:
		return t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			q, errno := s.Queue(c, int32(a.A1), 0)
			if errno == 0 {
				errno = s.RemoveQueue(c, q)
			}
			return 0, errno
		})
	}
	return 0, linux.EINVAL
}

// msgInfo implements IPC_INFO and MSG_INFO.
func (t task) msgInfo(at uint64, now bool) (uint64, linux.Errno) {
	const size, segmentBytes, segments = 32, 16, 0xffff
	b := make([]byte, size)
	highest, errno := t.with(func(s *sysv.State, _ sysv.Caller) (uint64, linux.Errno) {
		count, messages, bytes, highest := s.QueueTotals()
		if !now {
			d := sysv.Defaults() // these fields do not depend on the settings
			count, messages, bytes = d.Queues*(d.QueueBytes>>10), d.QueueBytes, uint64(d.QueueBytes)
		}
		putInts(b, count, messages, s.Limits.Message, s.Limits.QueueBytes, s.Limits.Queues, segmentBytes, int(bytes), segments)
		return uint64(highest), 0
	})
	if errno == 0 {
		errno = t.Memory().Write(at, b)
	}
	return highest, errno
}
