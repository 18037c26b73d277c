// Package sysv keeps System V's interprocess communication: shared memory segments, sets of semaphores and queues of messages,
// with their keys, permissions and limits (sysvipc(7)).
//
// It is a pure state machine: it does not wait, and takes no lock. The caller has one lock around a State, copies
// structures from and to programs, supplies the time in each Caller, and parks a thread whose operation is not
// possible yet. A Waiter calls its Wake when the operation may have become possible.
//
// The ID of an object consists of its index in a table and the number of objects that were stored there so far. A key
// is mapped to an ID. An object with the key IPC_PRIVATE is found by its ID only.
package sysv

import (
	"slices"

	"loam/abi/linux"
)

// Caller is the thread that makes a call.
type Caller struct {
	PID      int32
	UID, GID uint32 // effective user and group ID
	InGroup  func(gid uint32) bool
	Has      func(capability int) bool
	Now      int64 // current time in seconds since 1970
}

// Permissions is struct ipc64_perm.
type Permissions struct {
	Key                  int32
	ID                   int32
	UID, GID, CUID, CGID uint32
	Mode                 uint32
}

// Permission bits of an access, for user, group and others.
const (
	mayRead  = 0o444
	mayWrite = 0o222
	mayBoth  = mayRead | mayWrite
	modeBits = 0o777
)

// allows reports whether a caller may access the object with the permissions access.
func (p *Permissions) allows(c Caller, access uint32) bool {
	granted := p.Mode
	switch {
	case c.UID == p.UID || c.UID == p.CUID:
		granted >>= 6
	case c.InGroup(p.GID) || c.InGroup(p.CGID):
		granted >>= 3
	}
	wanted := access>>6 | access>>3 | access
	return wanted&^granted&7 == 0 || c.Has(linux.CAP_IPC_OWNER)
}

// owns reports whether a caller may change or remove the object.
func (p *Permissions) owns(c Caller) bool {
	return c.UID == p.UID || c.UID == p.CUID || c.Has(linux.CAP_SYS_ADMIN)
}

// Set changes owner and mode (IPC_SET). Errors: EPERM.
func (p *Permissions) Set(c Caller, uid, gid, mode uint32) linux.Errno {
	if !p.owns(c) {
		return linux.EPERM
	}
	p.UID, p.GID, p.Mode = uid, gid, p.Mode&^modeBits|mode&modeBits
	return 0
}

// object is the interface that all kinds of objects have in common.
type object interface{ permissions() *Permissions }

// The number of elements of a table, and the bits of an ID that contain the index.
const (
	placeBits = 15
	placeMask = 1<<placeBits - 1
)

// table holds the objects of one kind. A free element is nil.
type table[T object] struct {
	places []T
	used   []bool
	keys   map[int32]int // index of each object that has a key
	most   *int          // a field of Limits
	last   int           // index of the newest object
	serial int32
	count  int
}

func newTable[T object](most *int) table[T] {
	return table[T]{keys: map[int32]int{}, most: most, last: -1}
}

// add gives an object an ID. Errors: ENOSPC.
func (t *table[T]) add(o T) linux.Errno {
	if t.count >= *t.most {
		return linux.ENOSPC
	}
	at := slices.Index(t.used, false)
	if at < 0 {
		at = len(t.used)
		t.places, t.used = append(t.places, o), append(t.used, true)
	}
	if at <= t.last {
		t.serial = (t.serial + 1) & (1<<(31-placeBits) - 1)
	}
	t.places[at], t.used[at], t.last = o, true, at
	t.count++
	p := o.permissions()
	p.ID = t.serial<<placeBits | int32(at)
	if p.Key != linux.IPC_PRIVATE {
		t.keys[p.Key] = at
	}
	return 0
}

// find returns the object with an ID. Errors: EINVAL.
func (t *table[T]) find(id int32) (o T, errno linux.Errno) {
	at := int(id & placeMask)
	if id < 0 || at >= len(t.used) || !t.used[at] || t.places[at].permissions().ID != id {
		return o, linux.EINVAL
	}
	return t.places[at], 0
}

// at returns the object at an index (SHM_STAT and similar operations). Errors: EINVAL.
func (t *table[T]) at(place int32) (o T, errno linux.Errno) {
	if place < 0 || int(place) >= len(t.used) || !t.used[place] {
		return o, linux.EINVAL
	}
	return t.places[place], 0
}

// forgetKey makes an object unreachable by its key.
func (t *table[T]) forgetKey(o T) {
	p := o.permissions()
	if p.Key != linux.IPC_PRIVATE {
		delete(t.keys, p.Key)
		p.Key = linux.IPC_PRIVATE
	}
}

func (t *table[T]) remove(o T) {
	t.forgetKey(o)
	at := o.permissions().ID & placeMask
	var none T
	t.places[at], t.used[at] = none, false
	t.count--
}

// highest returns the highest index in use, or 0.
func (t *table[T]) highest() int32 {
	for i := len(t.used) - 1; i > 0; i-- {
		if t.used[i] {
			return int32(i)
		}
	}
	return 0
}

// all returns the objects in the order of their indices.
func (t *table[T]) all() (list []T) {
	for i, used := range t.used {
		if used {
			list = append(list, t.places[i])
		}
	}
	return list
}

// get returns the object of a key, or creates one (shmget(2), semget(2), msgget(2)). Errors: ENOENT, EEXIST, EACCES, ENOSPC,
// and the errors of check and create.
func (t *table[T]) get(c Caller, key int32, flags int, check func(T) linux.Errno, create func(Permissions) (T, linux.Errno)) (id int32, errno linux.Errno) {
	at, found := t.keys[key]
	if key == linux.IPC_PRIVATE || !found {
		if key != linux.IPC_PRIVATE && flags&linux.IPC_CREAT == 0 {
			return 0, linux.ENOENT
		}
		o, errno := create(Permissions{Key: key, UID: c.UID, GID: c.GID, CUID: c.UID, CGID: c.GID, Mode: uint32(flags) & modeBits})
		if errno == 0 {
			errno = t.add(o)
		}
		if errno != 0 {
			return 0, errno
		}
		return o.permissions().ID, 0
	}
	o := t.places[at]
	if flags&linux.IPC_CREAT != 0 && flags&linux.IPC_EXCL != 0 {
		return 0, linux.EEXIST
	}
	if errno := check(o); errno != 0 {
		return 0, errno
	}
	if !o.permissions().allows(c, uint32(flags)&modeBits) {
		return 0, linux.EACCES
	}
	return o.permissions().ID, 0
}

// State is all objects of a system.
type State struct {
	segments table[*Segment]
	sets     table[*Set]
	queues   table[*Queue]
	pages    uint64 // number of pages of all segments
	inSets   int    // number of semaphores of all sets

	Limits Limits
}

// Limits are the limits of a State (/proc/sys/kernel/shmmax, shmall, shmmni, sem, msgmax, msgmnb, msgmni).
type Limits struct {
	SegmentSize, SegmentPages     uint64 // size of a segment in bytes, and of all segments in pages
	Segments                      int    // number of segments
	InSet, Semaphores, Operations int    // number of semaphores of a set and of all sets, and of operations of a call
	Sets                          int    // number of sets
	Message, QueueBytes, Queues   int    // bytes of a message, bytes of all messages of a new queue, number of queues
}

// Defaults returns Linux's limits.
func Defaults() Limits {
	const huge = 1<<64 - 1 - 1<<24
	return Limits{
		SegmentSize: huge, SegmentPages: huge, Segments: 4096,
		InSet: 32000, Semaphores: 32000 * 32000, Operations: 500, Sets: 32000,
		Message: 8192, QueueBytes: 16384, Queues: 32000,
	}
}

// New returns a state without objects, with Linux's limits.
func New() *State {
	s := &State{Limits: Defaults()}
	s.segments, s.sets, s.queues = newTable[*Segment](&s.Limits.Segments), newTable[*Set](&s.Limits.Sets), newTable[*Queue](&s.Limits.Queues)
	return s
}

// Waiter represents a thread whose operation is not possible yet. Wake is called once, when the operation has been executed
// or should be tried again.
type Waiter struct {
	Wake  func()
	Done  bool // the operation has ended, and its result is Errno
	Errno linux.Errno
}
