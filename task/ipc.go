package task

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/sysv"
)

// System V's IPC: the calls. Package sysv has the objects. A thread that waits is a parked goroutine, as in every wait.

// ipc is the objects of a system. Order of locks: System.mu < mem.Map < ipc.mu.
type ipc struct {
	mu    sync.Mutex
	state *sysv.State
	undo  map[*Process]sysv.Undo // of processes that have used SEM_UNDO
}

func newIPC() *ipc { return &ipc{state: sysv.New(), undo: map[*Process]sysv.Undo{}} }

// ipcCalls are the calls of System V's IPC.
var ipcCalls = map[int]serveFunc{
	linux.SYS_SHMGET: shmget, linux.SYS_SHMAT: shmat, linux.SYS_SHMDT: shmdt, linux.SYS_SHMCTL: shmctl,
	linux.SYS_SEMGET: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.withIPC(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			id, errno := s.GetSet(c, int32(a.A1), number(a.A2), number(a.A3))
			return uint64(id), errno
		})
	},
	linux.SYS_SEMOP: func(t *Task, a call.Args) (uint64, linux.Errno) { return t.semop(a, forever) },
	linux.SYS_SEMTIMEDOP: func(t *Task, a call.Args) (uint64, linux.Errno) {
		most := forever
		if a.A4 != 0 {
			var errno linux.Errno
			if most, errno = t.duration(a.A4); errno != 0 {
				return 0, errno
			}
		}
		return t.semop(a, most)
	},
	linux.SYS_SEMCTL: semctl,
	linux.SYS_MSGGET: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.withIPC(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			id, errno := s.GetQueue(c, int32(a.A1), number(a.A2))
			return uint64(id), errno
		})
	},
	linux.SYS_MSGSND: msgsnd, linux.SYS_MSGRCV: msgrcv, linux.SYS_MSGCTL: msgctl,
}

// ipcCaller returns the task as a caller of package sysv.
func (t *Task) ipcCaller() sysv.Caller {
	c := t.creds()
	return sysv.Caller{PID: int32(t.process.node.PID), UID: c.EUID, GID: c.EGID, InGroup: func(gid uint32) bool {
		if gid == c.EGID {
			return true
		}
		for _, g := range c.Groups {
			if g == gid {
				return true
			}
		}
		return false
	}, Has: c.Has, Now: time.Now().Unix()}
}

// withIPC calls f with the lock.
func (t *Task) withIPC(f func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno)) (uint64, linux.Errno) {
	c := t.ipcCaller()
	i := t.process.system.ipc
	i.mu.Lock()
	defer i.mu.Unlock()
	return f(i.state, c)
}

// leave applies the adjustments of a process that ends (SEM_UNDO). The caller holds System.mu.
func (i *ipc) leave(p *Process) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if u := i.undo[p]; u != nil {
		i.state.Leave(sysv.Caller{PID: int32(p.node.PID), Now: time.Now().Unix()}, u)
		delete(i.undo, p)
	}
}

// files returns the files of /proc about the objects and their limits.
func (i *ipc) files() map[string]func() string {
	text := func(f func() string) func() string {
		return func() string {
			i.mu.Lock()
			defer i.mu.Unlock()
			return f()
		}
	}
	fixed := func(values ...any) func() string { return func() string { return fmt.Sprintln(values...) } }
	return map[string]func() string{
		"sysvipc/shm": text(i.state.SegmentText), "sysvipc/sem": text(i.state.SetText), "sysvipc/msg": text(i.state.QueueText),

		"sys/kernel/shmmax": fixed(uint64(sysv.MaxSegmentSize)), "sys/kernel/shmall": fixed(uint64(sysv.MaxSegmentPages)),
		"sys/kernel/shmmni": fixed(sysv.MaxSegments), "sys/kernel/msgmax": fixed(sysv.MaxMessage),
		"sys/kernel/msgmnb": fixed(sysv.MaxQueueBytes), "sys/kernel/msgmni": fixed(sysv.MaxQueues),
		"sys/kernel/sem": func() string {
			return fmt.Sprintf("%d\t%d\t%d\t%d\n", sysv.MaxInSet, sysv.MaxSemaphores, sysv.MaxOperations, sysv.MaxSets)
		},
	}
}

// Sizes of structures in bytes.
const (
	permissionsSize = 48
	semOpSize       = 6
	setSize64       = 104 // struct semid64_ds
	queueSize       = 120 // struct msqid64_ds
	segmentSize     = 112 // struct shmid64_ds
)

// putPermissions encodes a struct ipc64_perm.
func putPermissions(b []byte, p *sysv.Permissions) {
	le := binary.LittleEndian
	le.PutUint32(b, uint32(p.Key))
	for i, v := range [...]uint32{p.UID, p.GID, p.CUID, p.CGID, p.Mode} {
		le.PutUint32(b[4+4*i:], v)
	}
	le.PutUint16(b[24:], uint16(p.ID>>15))
}

// setPermissions reads what IPC_SET changes from the beginning of a structure.
func (t *Task) setPermissions(at uint64, size int) (b []byte, uid, gid, mode uint32, errno linux.Errno) {
	b = make([]byte, size)
	errno = t.caller.Memory.Read(b, at)
	le := binary.LittleEndian
	return b, le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[20:]), errno
}

// putWords encodes words of 64 bits.
func putWords(b []byte, words ...uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
}

// putInts encodes words of 32 bits.
func putInts(b []byte, ints ...int) {
	for i, v := range ints {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	}
}

// semop implements semop(2) and semtimedop(2).
func (t *Task) semop(a call.Args, most time.Duration) (uint64, linux.Errno) {
	n := uint32(a.A3)
	switch {
	case n == 0:
		return 0, linux.EINVAL
	case n > sysv.MaxOperations:
		return 0, linux.E2BIG
	}
	b := make([]byte, n*semOpSize)
	if errno := t.caller.Memory.Read(b, a.A2); errno != 0 {
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
	c, x := t.ipcCaller(), t.process.system.ipc
	ready := make(chan struct{}) // closed when the operation is done
	x.mu.Lock()
	u := x.undo[t.process]
	if u == nil && undone {
		u = sysv.Undo{}
		x.undo[t.process] = u
	}
	o, errno := x.state.Operate(c, int32(a.A1), ops, u, func() { close(ready) })
	x.mu.Unlock()
	if o == nil {
		return 0, errno
	}
	errno = t.await(ready, most)
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
func semctl(t *Task, a call.Args) (uint64, linux.Errno) {
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
		return t.withIPC(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			set, errno := s.Set(c, int32(a.A1), 0)
			if errno == 0 {
				errno = set.Permissions.Set(c, uid, gid, mode)
				set.Changed = c.Now
			}
			return 0, errno
		})
	case linux.IPC_RMID:
		return t.withIPC(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			set, errno := s.Set(c, int32(a.A1), 0)
			if errno == 0 {
				errno = s.RemoveSet(c, set)
			}
			return 0, errno
		})
	case linux.GETVAL, linux.GETPID, linux.GETNCNT, linux.GETZCNT:
		return t.withIPC(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
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
func (t *Task) semInfo(at uint64, now bool) (uint64, linux.Errno) {
	var count, semaphores int
	highest, errno := t.withIPC(func(s *sysv.State, _ sysv.Caller) (uint64, linux.Errno) {
		var highest int32
		count, semaphores, highest = s.SetTotals()
		return uint64(highest), 0
	})
	const undoSize, intSize, ints = 20, 4, 10
	used, most := undoSize, sysv.MaxValue
	if now {
		used, most = count, semaphores
	}
	b := make([]byte, ints*intSize)
	putInts(b, sysv.MaxSemaphores, sysv.MaxSets, sysv.MaxSemaphores, sysv.MaxSemaphores, sysv.MaxInSet, sysv.MaxOperations,
		sysv.MaxOperations, used, sysv.MaxValue, most)
	if errno == 0 {
		errno = t.caller.Memory.Write(at, b)
	}
	return highest, errno
}

// semStat implements IPC_STAT, SEM_STAT and SEM_STAT_ANY.
func (t *Task) semStat(a call.Args) (uint64, linux.Errno) {
	b := make([]byte, setSize64)
	id, errno := t.withIPC(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
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
	return id, t.caller.Memory.Write(a.A4, b)
}

// statted returns the object of IPC_STAT and its variants, by ID or by place.
func statted[T any](c sysv.Caller, a call.Args, byID, any bool, find, at func(sysv.Caller, int32, uint32) (T, linux.Errno)) (T, linux.Errno) {
	access := uint32(0o444)
	switch {
	case byID:
		return find(c, int32(a.A1), access)
	case any:
		access = 0
	}
	return at(c, int32(a.A1), access)
}

// semValues implements GETALL, SETALL and SETVAL.
func (t *Task) semValues(a call.Args) (uint64, linux.Errno) {
	const each = 2
	command, size := number(a.A3), 0
	access := uint32(0o222)
	if command == linux.GETALL {
		access = 0o444
	}
	_, errno := t.withIPC(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
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
		if errno := t.caller.Memory.Read(b, a.A4); errno != 0 {
			return 0, errno
		}
		first, values = 0, make([]int, size)
		for i := range values {
			values[i] = int(binary.LittleEndian.Uint16(b[i*each:]))
		}
	}
	_, errno = t.withIPC(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
		set, errno := s.Set(c, int32(a.A1), access)
		if errno != 0 {
			return 0, linux.EIDRM
		}
		if command != linux.GETALL {
			var all []sysv.Undo
			for _, u := range t.process.system.ipc.undo {
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
	return 0, t.caller.Memory.Write(a.A4, b)
}
