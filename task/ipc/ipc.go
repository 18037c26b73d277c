// Package ipc implements the calls of System V's IPC: shared memory segments, semaphores and message queues (sysvipc(7)).
// Package sysv has the objects. A thread that waits is a parked goroutine, as in every wait.
//
// ipc.go has the table of calls and what they have in common; each other file has one kind of object.
package ipc

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/task/sysv"
)

// Objects holds the System V objects of a system. If both are needed, the lock of a mem.Map is acquired before the lock of
// Objects.
type Objects struct {
	memory mem.Memory
	pages  int64 // size of the machine's memory in pages

	mu    sync.Mutex
	state *sysv.State
	undo  map[int32]sysv.Undo // adjustments of processes that have used SEM_UNDO, by process ID

	segments atomic.Bool // a segment has existed, so munmap must check for attached segments
}

// New returns the objects of a system with a memory of a size in pages.
func New(memory mem.Memory, pages int64) *Objects {
	return &Objects{memory: memory, pages: pages, state: sysv.New(), undo: map[int32]sysv.Undo{}}
}

// Caller is the thread that makes a call.
type Caller interface {
	// PID returns the process ID of the thread, Identity its credentials, and Map and Memory its memory.
	PID() int32
	Identity() *credential.Set
	Map() *mem.Map
	Memory() call.Memory
	// Await waits until ready is closed, or until the duration most has passed. A negative duration means no timeout.
	// Errors: ETIMEDOUT, EINTR.
	Await(ready <-chan struct{}, most time.Duration) linux.Errno
	// Duration reads a struct timespec. Errors: EFAULT, EINVAL.
	Duration(addr uint64) (time.Duration, linux.Errno)
}

// task is a System V call in progress: the objects and the calling thread.
type task struct {
	Caller
	objects *Objects
}

// forever is the duration of a wait without a timeout.
const forever time.Duration = -1

// number returns the int in the lower half of a register.
func number(a uint64) int { return int(int32(a)) }

// Serves reports whether a system call belongs to System V IPC.
func Serves(number int) bool { return calls[number] != nil }

// Call executes a call.
func (o *Objects) Call(c Caller, number int, a call.Args) (uint64, linux.Errno) {
	return calls[number](task{c, o}, a)
}

// calls are the calls of System V's IPC, by number.
var calls = map[int]func(task, call.Args) (uint64, linux.Errno){
	linux.SYS_SHMGET: shmget, linux.SYS_SHMAT: shmat, linux.SYS_SHMDT: shmdt, linux.SYS_SHMCTL: shmctl,
	linux.SYS_SEMGET: func(t task, a call.Args) (uint64, linux.Errno) {
		return t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			id, errno := s.GetSet(c, int32(a.A1), number(a.A2), number(a.A3))
			return uint64(id), errno
		})
	},
	linux.SYS_SEMOP: func(t task, a call.Args) (uint64, linux.Errno) { return t.semop(a, forever) },
	linux.SYS_SEMTIMEDOP: func(t task, a call.Args) (uint64, linux.Errno) {
		most := forever
		if a.A4 != 0 {
			var errno linux.Errno
			if most, errno = t.Duration(a.A4); errno != 0 {
				return 0, errno
			}
		}
		return t.semop(a, most)
	},
	linux.SYS_SEMCTL: semctl,
	linux.SYS_MSGGET: func(t task, a call.Args) (uint64, linux.Errno) {
		return t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			id, errno := s.GetQueue(c, int32(a.A1), number(a.A2))
			return uint64(id), errno
		})
	},
	linux.SYS_MSGSND: msgsnd, linux.SYS_MSGRCV: msgrcv, linux.SYS_MSGCTL: msgctl,
}

// caller returns the thread as a caller of package sysv.
func (t task) caller() sysv.Caller {
	c := t.Identity()
	return sysv.Caller{PID: t.PID(), UID: c.EUID, GID: c.EGID, InGroup: func(gid uint32) bool {
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

// with calls f while it holds the lock of the objects.
func (t task) with(f func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno)) (uint64, linux.Errno) {
	c := t.caller()
	i := t.objects
	i.mu.Lock()
	defer i.mu.Unlock()
	return f(i.state, c)
}

// Adjusts reports whether a process has used SEM_UNDO.
func (i *Objects) Adjusts(pid int32) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.undo[pid] != nil
}

// Leave applies the semaphore adjustments (SEM_UNDO) of a process that ends.
func (i *Objects) Leave(pid int32) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if u := i.undo[pid]; u != nil {
		i.state.Leave(sysv.Caller{PID: pid, Now: time.Now().Unix()}, u)
		delete(i.undo, pid)
	}
}

// Limits calls f with the limits, which f may change.
func (i *Objects) Limits(f func(*sysv.Limits)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f(&i.state.Limits)
}

// Files returns the files of /proc about the objects.
func (i *Objects) Files() map[string]func() string {
	text := func(f func() string) func() string {
		return func() string {
			i.mu.Lock()
			defer i.mu.Unlock()
			return f()
		}
	}
	return map[string]func() string{
		"sysvipc/shm": text(i.state.SegmentText), "sysvipc/sem": text(i.state.SetText), "sysvipc/msg": text(i.state.QueueText),
	}
}

// Sizes of Linux's structures in bytes.
const (
	permissionsSize = 48
	semOpSize       = 6
	setSize64       = 104 // size of struct semid64_ds
	queueSize       = 120 // size of struct msqid64_ds
	segmentSize     = 112 // size of struct shmid64_ds
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

// setPermissions reads the fields that IPC_SET changes, which are at the beginning of a structure.
func (t task) setPermissions(at uint64, size int) (b []byte, uid, gid, mode uint32, errno linux.Errno) {
	b = make([]byte, size)
	errno = t.Memory().Read(b, at)
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

// statted returns the object for IPC_STAT, by its ID, or for variants such as SHM_STAT, by its index in the table.
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
