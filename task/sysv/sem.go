package sysv

import (
	"fmt"
	"slices"
	"strings"

	"loam/abi/linux"
)

// MaxValue is the largest value of a semaphore.
const MaxValue = 32767

// most bounds the memory of a set: the number of its semaphores.
const most = 1 << 20

// Set is a set of semaphores.
type Set struct {
	Permissions
	Operated, Changed int64 // times of the last semop and change, in seconds since 1970
	semaphores        []semaphore
	waiting           []*Operation // waiting operations, in the order of arrival
	removed           bool
}

type semaphore struct {
	value int
	last  int32 // process ID of the process that changed the semaphore last
}

func (t *Set) permissions() *Permissions { return &t.Permissions }

// Size returns the number of semaphores.
func (t *Set) Size() int { return len(t.semaphores) }

// Undo holds the adjustments that a process has accumulated (SEM_UNDO), for each set.
type Undo map[*Set][]int

// Op is struct sembuf.
type Op struct {
	Number uint16
	Change int16
	Flags  int16
}

// Operation is an array of Ops that a thread waits to execute: all of them in one step, or none (semop(2)).
type Operation struct {
	Waiter
	set     *Set
	ops     []Op
	undo    Undo
	pid     int32
	blocker Op // the first of the Ops that is not possible now
}

// GetSet implements semget(2). Errors: EINVAL, ENOSPC, ENOENT, EEXIST, EACCES.
func (s *State) GetSet(c Caller, key int32, count, flags int) (int32, linux.Errno) {
	if count < 0 || count > s.Limits.InSet {
		return 0, linux.EINVAL
	}
	made := 0
	id, errno := s.sets.get(c, key, flags, func(t *Set) linux.Errno {
		if count > len(t.semaphores) {
			return linux.EINVAL
		}
		return 0
	}, func(p Permissions) (*Set, linux.Errno) {
		switch {
		case count == 0:
			return nil, linux.EINVAL
		case s.inSets+count > s.Limits.Semaphores:
			return nil, linux.ENOSPC
		case count > most:
			return nil, linux.ENOMEM
		}
		made = count
		return &Set{Permissions: p, Changed: c.Now, semaphores: make([]semaphore, count)}, 0
	})
	if errno == 0 {
		s.inSets += made
	}
	return id, errno
}

// Set returns the semaphore set with an ID, if the caller may access it. Errors: EINVAL, EIDRM, EACCES.
func (s *State) Set(c Caller, id int32, access uint32) (*Set, linux.Errno) {
	t, errno := s.sets.find(id)
	if errno == 0 && !t.allows(c, access) {
		errno = linux.EACCES
	}
	return t, errno
}

// SetAt returns the semaphore set at an index of the table, if the caller may access it.
func (s *State) SetAt(c Caller, place int32, access uint32) (*Set, linux.Errno) {
	t, errno := s.sets.at(place)
	if errno == 0 && !t.allows(c, access) {
		errno = linux.EACCES
	}
	return t, errno
}

// RemoveSet implements IPC_RMID: waiting operations return EIDRM. Errors: EPERM.
func (s *State) RemoveSet(c Caller, t *Set) linux.Errno {
	if !t.owns(c) {
		return linux.EPERM
	}
	t.removed = true
	for _, o := range t.waiting {
		o.finish(linux.EIDRM)
	}
	t.waiting = nil
	s.sets.remove(t)
	s.inSets -= len(t.semaphores)
	return 0
}

func (o *Operation) finish(errno linux.Errno) {
	o.Done, o.Errno = true, errno
	o.Wake()
}

// Operate executes operations all at once or not at all (semop(2)). If one of them is not possible yet, it returns a
// waiting Operation; the function wake is called when the Operation has ended. Errors: EINVAL, E2BIG, EFBIG, EACCES,
// EAGAIN, ERANGE.
func (s *State) Operate(c Caller, id int32, ops []Op, undo Undo, wake func()) (*Operation, linux.Errno) {
	t, errno := s.sets.find(id)
	if errno != 0 {
		return nil, errno
	}
	access := uint32(mayRead)
	for _, op := range ops {
		if int(op.Number) >= len(t.semaphores) {
			return nil, linux.EFBIG
		}
		if op.Change != 0 {
			access = mayWrite
		}
	}
	if !t.allows(c, access) {
		return nil, linux.EACCES
	}
	o := &Operation{Waiter: Waiter{Wake: wake}, set: t, ops: ops, undo: undo, pid: c.PID}
	possible, errno := o.try()
	switch {
	case errno != 0:
		return nil, errno
	case possible:
		t.Operated = c.Now
		t.settle(c.Now)
		return nil, 0
	case o.blocker.Flags&linux.IPC_NOWAIT != 0:
		return nil, linux.EAGAIN
	}
	t.waiting = append(t.waiting, o)
	return o, 0
}

// try executes the operations if all are possible. Errors: ERANGE.
func (o *Operation) try() (possible bool, errno linux.Errno) {
	t := o.set
	old := make([]int, len(o.ops))
	restore := func(n int) {
		for i := n - 1; i >= 0; i-- {
			t.semaphores[o.ops[i].Number].value = old[i]
		}
	}
	adjusted := map[uint16]int{} // see adjust
	for i, op := range o.ops {
		v := &t.semaphores[op.Number].value
		old[i] = *v
		next := *v + int(op.Change)
		switch {
		case op.Change == 0 && *v != 0, next < 0:
			o.blocker = op
			restore(i)
			return false, 0
		case next > MaxValue, op.Flags&linux.SEM_UNDO != 0 && !o.adjust(adjusted, op):
			restore(i)
			return false, linux.ERANGE
		}
		*v = next
	}
	for _, op := range o.ops {
		t.semaphores[op.Number].last = o.pid
		if op.Flags&linux.SEM_UNDO != 0 {
			adjustments := o.undo[t]
			if adjustments == nil {
				adjustments = make([]int, len(t.semaphores))
				o.undo[t] = adjustments
			}
			adjustments[op.Number] -= int(op.Change)
		}
	}
	return true, 0
}

// adjust adds an operation to the adjustments (SEM_UNDO) that the process will have, by the number of the semaphore, and reports whether
// the adjustment stays within its range.
func (o *Operation) adjust(adjusted map[uint16]int, op Op) bool {
	sum, ok := adjusted[op.Number]
	if a := o.undo[o.set]; !ok && a != nil {
		sum = a[op.Number]
	}
	sum -= int(op.Change)
	adjusted[op.Number] = sum
	return sum >= -MaxValue-1 && sum <= MaxValue
}

// settle executes waiting operations that have become possible, in the order of arrival, until none is possible.
func (t *Set) settle(now int64) {
	for again := true; again; {
		again = false
		for i := 0; i < len(t.waiting); i++ {
			o := t.waiting[i]
			possible, errno := o.try()
			if !possible && errno == 0 {
				if o.blocker.Flags&linux.IPC_NOWAIT == 0 {
					continue
				}
				errno = linux.EAGAIN // another operation of the same call is impossible now, and that operation has IPC_NOWAIT
			}
			t.waiting = slices.Delete(t.waiting, i, i+1)
			i--
			if errno == 0 {
				t.Operated, again = now, true
			}
			o.finish(errno)
		}
	}
}

// Cancel ends the wait of an operation that is not done.
func (o *Operation) Cancel() {
	t := o.set
	t.waiting = slices.DeleteFunc(t.waiting, func(w *Operation) bool { return w == o })
}

// Value returns the value of a semaphore, the process that changed it last, and the numbers of threads that wait for a higher
// value and for zero. Errors: EINVAL.
func (t *Set) Value(n int) (value int, last int32, higher, zero int, errno linux.Errno) {
	if n < 0 || n >= len(t.semaphores) {
		return 0, 0, 0, 0, linux.EINVAL
	}
	for _, o := range t.waiting {
		switch {
		case int(o.blocker.Number) != n:
		case o.blocker.Change == 0:
			zero++
		default:
			higher++
		}
	}
	return t.semaphores[n].value, t.semaphores[n].last, higher, zero, 0
}

// SetValues sets the values of semaphores, starting with number n (SETVAL, SETALL). It drops the adjustments of all
// processes for these semaphores. Errors: EINVAL, ERANGE.
func (s *State) SetValues(c Caller, t *Set, n int, values []int, all []Undo) linux.Errno {
	if n < 0 || n+len(values) > len(t.semaphores) {
		return linux.EINVAL
	}
	for _, v := range values {
		if v < 0 || v > MaxValue {
			return linux.ERANGE
		}
	}
	for i, v := range values {
		t.semaphores[n+i] = semaphore{v, c.PID}
		for _, u := range all {
			if a := u[t]; a != nil {
				a[n+i] = 0
			}
		}
	}
	t.Changed = c.Now
	t.settle(c.Now)
	return 0
}

// Leave applies the SEM_UNDO adjustments of a process that ends.
func (s *State) Leave(c Caller, undo Undo) {
	for t, adjustments := range undo {
		if t.removed {
			continue
		}
		for i, a := range adjustments {
			if a != 0 {
				m := &t.semaphores[i]
				m.value, m.last = min(max(m.value+a, 0), MaxValue), c.PID
			}
		}
		t.Operated = c.Now
		t.settle(c.Now)
	}
}

// SetTotals returns the number of sets, the number of semaphores, and the highest index of the table in use.
func (s *State) SetTotals() (count, semaphores int, highest int32) {
	return s.sets.count, s.inSets, s.sets.highest()
}

// SetText returns /proc/sysvipc/sem.
func (s *State) SetText() string {
	var b strings.Builder
	b.WriteString("       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n")
	for _, t := range s.sets.all() {
		fmt.Fprintf(&b, "%10d %10d  %4o %10d %5d %5d %5d %5d %10d %10d\n", t.Key, t.ID, t.Mode, len(t.semaphores), t.UID, t.GID,
			t.CUID, t.CGID, t.Operated, t.Changed)
	}
	return b.String()
}
