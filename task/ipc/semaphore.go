package ipc

import (
	"encoding/binary"
	"time"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/sysv"
)

// Calls on System V semaphore sets.

// semop implements semop(2) and semtimedop(2).
func (t task) semop(a call.Args, most time.Duration) (uint64, linux.Errno) {
	const bound = 1 << 16 // bounds the memory of a call
	n, limit := uint32(a.A3), 0
	t.objects.Limits(func(l *sysv.Limits) { limit = l.Operations })
	switch {
	case n == 0:
		return 0, linux.EINVAL
	case n > uint32(limit):
		return 0, linux.E2BIG
	case n > bound:
		return 0, linux.ENOMEM
	}
	b := make([]byte, n*semOpSize)
	if errno := t.Memory().Read(b, a.A2); errno != 0 {
		return 0, errno
	}
	ops := make([]sysv.Op, n)
	undone := false
	for i := range ops {
		w := b[i*semOpSize:]
		le := binary.LittleEndian
		ops[i] = sysv.Op{Number: le.Uint16(w), Change: int16(le.Uint16(w[2:])), Flags: int16(le.Uint16(w[4:]))}
		undone = undone || ops[i].Flags&linux.SEM_UNDO != 0
	}
	c, x := t.caller(), t.objects
	ready := make(chan struct{}) // closed when the operation has been executed
	x.mu.Lock()
	u := x.undo[t.PID()]
	if u == nil && undone {
		u = sysv.Undo{}
		x.undo[t.PID()] = u
	}
	o, errno := x.state.Operate(c, int32(a.A1), ops, u, func() { close(ready) })
	x.mu.Unlock()
	if o == nil {
		return 0, errno
	}
	errno = t.Await(ready, most)
	x.mu.Lock()
	defer x.mu.Unlock()
	if o.Done {
		return 0, o.Errno
	}
	o.Cancel()
	if errno == linux.ETIMEDOUT {
		errno = linux.EAGAIN
	}
	return 0, errno
}

// semctl implements semctl(2).
func semctl(t task, a call.Args) (uint64, linux.Errno) {
	command := number(a.A3)
	switch command {
	case linux.IPC_INFO, linux.SEM_INFO:
		return t.semInfo(a.A4, command == linux.SEM_INFO)
	case linux.IPC_STAT, linux.SEM_STAT, linux.SEM_STAT_ANY:
		return t.semStat(a)
	case linux.GETALL, linux.SETALL, linux.SETVAL:
		return t.semValues(a)
	case linux.IPC_SET:
		_, uid, gid, mode, errno := t.setPermissions(a.A4, setSize64)
		if errno != 0 {
			return 0, errno
		}
		return t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			set, errno := s.Set(c, int32(a.A1), 0)
			if errno == 0 {
				errno = set.Permissions.Set(c, uid, gid, mode)
				set.Changed = c.Now
			}
			return 0, errno
		})
	case linux.IPC_RMID:
		return t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			set, errno := s.Set(c, int32(a.A1), 0)
			if errno == 0 {
				errno = s.RemoveSet(c, set)
			}
			return 0, errno
		})
	case linux.GETVAL, linux.GETPID, linux.GETNCNT, linux.GETZCNT:
		return t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			set, errno := s.Set(c, int32(a.A1), 0o444)
			if errno != 0 {
				return 0, errno
			}
			value, last, higher, zero, errno := set.Value(number(a.A2))
			return uint64(map[int]int{linux.GETVAL: value, linux.GETPID: int(last), linux.GETNCNT: higher, linux.GETZCNT: zero}[command]), errno
		})
	}
	return 0, linux.EINVAL
}

// semInfo implements IPC_INFO and SEM_INFO.
func (t task) semInfo(at uint64, now bool) (uint64, linux.Errno) {
	var count, semaphores int
	var l sysv.Limits
	highest, errno := t.with(func(s *sysv.State, _ sysv.Caller) (uint64, linux.Errno) {
		var highest int32
		count, semaphores, highest = s.SetTotals()
		l = s.Limits
		return uint64(highest), 0
	})
	const undoSize, intSize, ints = 20, 4, 10
	used, most := undoSize, sysv.MaxValue
	if now {
		used, most = count, semaphores
	}
	b := make([]byte, ints*intSize)
	d := sysv.Defaults() // some fields do not depend on the settings
	putInts(b, d.Semaphores, l.Sets, l.Semaphores, d.Semaphores, l.InSet, l.Operations, d.Operations, used, sysv.MaxValue, most)
	if errno == 0 {
		errno = t.Memory().Write(at, b)
	}
	return highest, errno
}

// semStat implements IPC_STAT, SEM_STAT and SEM_STAT_ANY.
func (t task) semStat(a call.Args) (uint64, linux.Errno) {
	b := make([]byte, setSize64)
	id, errno := t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
		set, errno := statted(c, a, number(a.A3) == linux.IPC_STAT, number(a.A3) == linux.SEM_STAT_ANY, s.Set, s.SetAt)
		if errno != 0 {
			return 0, errno
		}
		putPermissions(b, &set.Permissions)
		putWords(b[permissionsSize:], uint64(set.Operated), 0, uint64(set.Changed), 0, uint64(set.Size()))
		if number(a.A3) == linux.IPC_STAT {
			return 0, 0
		}
		return uint64(set.ID), 0
	})
	if errno != 0 {
		return 0, errno
	}
	return id, t.Memory().Write(a.A4, b)
}

// semValues implements GETALL, SETALL and SETVAL.
func (t task) semValues(a call.Args) (uint64, linux.Errno) {
	const each = 2
	command, size := number(a.A3), 0
	access := uint32(0o222)
	if command == linux.GETALL {
		access = 0o444
	}
	_, errno := t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
		set, errno := s.Set(c, int32(a.A1), access)
		if errno == 0 {
			size = set.Size()
		}
		return 0, errno
	})
	if errno != 0 {
		return 0, errno
	}
	b := make([]byte, size*each)
	first, values := number(a.A2), []int{number(a.A4)}
	if command == linux.SETALL {
		if errno := t.Memory().Read(b, a.A4); errno != 0 {
			return 0, errno
		}
		first, values = 0, make([]int, size)
		for i := range values {
			values[i] = int(binary.LittleEndian.Uint16(b[i*each:]))
		}
	}
	_, errno = t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
		set, errno := s.Set(c, int32(a.A1), access)
		if errno != 0 {
			return 0, linux.EIDRM
		}
		if command != linux.GETALL {
			var all []sysv.Undo
			for _, u := range t.objects.undo {
				all = append(all, u)
			}
			return 0, s.SetValues(c, set, first, values, all)
		}
		for i := range size {
			v, _, _, _, _ := set.Value(i)
			binary.LittleEndian.PutUint16(b[i*each:], uint16(v))
		}
		return 0, 0
	})
	if errno != 0 || command != linux.GETALL {
		return 0, errno
	}
	return 0, t.Memory().Write(a.A4, b)
}
