package sysv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"loam/abi/linux"
)

// root returns a caller with all rights.
func root(pid int32) Caller {
	return Caller{PID: pid, InGroup: func(gid uint32) bool { return gid == 0 }, Has: func(int) bool { return true }, Now: 7}
}

// user returns a caller without capabilities.
func user(uid uint32) Caller {
	return Caller{PID: 9, UID: uid, GID: uid, InGroup: func(gid uint32) bool { return gid == uid }, Has: func(int) bool { return false }}
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func none() {}

// TestModel: random operations on a set of semaphores agree with a model that retries all waiting operations after
// each change, in the order of arrival. At the end, the undo lists (SEM_UNDO) of all processes restore the values of
// the semaphores.
func TestModel(t *testing.T) {
	const count, processes = 3, 4
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := New()
		id, _ := s.GetSet(root(1), 0, count, 0o600)
		set, _ := s.Set(root(1), id, 0)
		var values [count]int
		var undone [processes][count]int
		var undo [processes]Undo
		for i := range undo {
			undo[i] = Undo{}
		}
		type pending struct {
			o       *Operation
			ops     []Op
			process int
		}
		var waiting []pending
		apply := func(p int, ops []Op) bool { // makes all of the operations, or none
			next, adjusted := values, undone[p]
			for _, op := range ops {
				v := &next[op.Number]
				if op.Change == 0 && *v != 0 || *v+int(op.Change) < 0 {
					return false
				}
				*v += int(op.Change)
				if op.Flags&linux.SEM_UNDO != 0 {
					adjusted[op.Number] -= int(op.Change)
				}
			}
			values, undone[p] = next, adjusted
			return true
		}
		for step := range 60 {
			p := r.IntN(processes)
			ops := make([]Op, 1+r.IntN(3))
			for i := range ops {
				ops[i] = Op{Number: uint16(r.IntN(count)), Change: int16(r.IntN(7) - 3)}
				if r.IntN(3) == 0 {
					ops[i].Flags = linux.SEM_UNDO
				}
			}
			woken := 0
			o, errno := s.Operate(root(int32(p)), id, ops, undo[p], func() { woken++ })
			possible := apply(p, ops)
			if errno != 0 || (o == nil) != possible {
				t.Fatalf("seed %d, step %d: %v, %v, want done %v", seed, step, o, errno, possible)
			}
			if o != nil {
				waiting = append(waiting, pending{o, ops, p})
			}
			for again := possible; again; {
				again = false
				for i := 0; i < len(waiting); i++ {
					if w := waiting[i]; apply(w.process, w.ops) {
						if !w.o.Done || w.o.Errno != 0 {
							t.Fatalf("seed %d, step %d: an operation waits that is possible", seed, step)
						}
						waiting = slices.Delete(waiting, i, i+1)
						i--
						again = true
					}
				}
			}
			for i, v := range values {
				if got, _, _, _, _ := set.Value(i); got != v {
					t.Fatalf("seed %d, step %d: semaphore %d is %d, want %d", seed, step, i, got, v)
				}
			}
			for _, w := range waiting {
				if w.o.Done {
					t.Fatalf("seed %d, step %d: an operation is done that is not possible", seed, step)
				}
			}
		}
		for _, w := range waiting {
			w.o.Cancel()
		}
		for p := range undo {
			s.Leave(root(int32(p)), undo[p])
			for i := range values {
				values[i] = min(max(values[i]+undone[p][i], 0), MaxValue)
			}
		}
		for i, v := range values {
			if got, _, _, _, _ := set.Value(i); got != v {
				t.Errorf("seed %d: after the end semaphore %d is %d, want %d", seed, i, got, v)
			}
		}
	}
}

// TestKeys: a key leads to its object until the object is removed, and an old ID is not valid for a new object in its
// place.
func TestKeys(t *testing.T) {
	s, c := New(), root(1)
	a, errno := s.GetQueue(c, 5, linux.IPC_CREAT|0o600)
	want(t, "create", errno, 0)
	again, _ := s.GetQueue(c, 5, 0)
	want(t, "again", again, a)
	_, errno = s.GetQueue(c, 6, 0)
	want(t, "unknown", errno, linux.ENOENT)
	_, errno = s.GetQueue(c, 5, linux.IPC_CREAT|linux.IPC_EXCL)
	want(t, "exclusive", errno, linux.EEXIST)
	q, _ := s.Queue(c, a, 0)
	want(t, "remove", s.RemoveQueue(c, q), 0)
	b, _ := s.GetQueue(c, 5, linux.IPC_CREAT|0o600)
	want(t, "same ID", a == b, false)
	_, errno = s.Queue(c, a, 0)
	want(t, "old ID", errno, linux.EINVAL)
}

// TestPermissions: owner, group and others have the access of their mode bits; only the owner can remove an object.
func TestPermissions(t *testing.T) {
	s := New()
	id, _ := s.GetSet(user(5), 0, 1, 0o640)
	for _, test := range []struct {
		uid    uint32
		access uint32
		want   linux.Errno
	}{{5, mayBoth, 0}, {6, mayRead, linux.EACCES}} {
		_, errno := s.Set(user(test.uid), id, test.access)
		want(t, "access", errno, test.want)
	}
	member := user(6)
	member.InGroup = func(gid uint32) bool { return gid == 5 }
	_, errno := s.Set(member, id, mayRead)
	want(t, "group reads", errno, 0)
	_, errno = s.Set(member, id, mayWrite)
	want(t, "group writes", errno, linux.EACCES)
	set, _ := s.Set(root(1), id, 0)
	want(t, "remove", s.RemoveSet(user(6), set), linux.EPERM)
	want(t, "remove", s.RemoveSet(user(5), set), 0)
}

// TestSegment: a removed segment stays until its last mapping is gone. A call of shmat that has found the segment and not
// yet mapped it counts as a mapping.
func TestSegment(t *testing.T) {
	s, c := New(), root(1)
	id, errno := s.GetSegment(c, 8, 5000, linux.IPC_CREAT|0o600, func(*Segment) linux.Errno { return 0 })
	want(t, "create", errno, 0)
	g, _ := s.Segment(c, id, 0)
	g.Hold()
	gone, _ := s.RemoveSegment(c, g)
	want(t, "gone while held", gone, false)
	want(t, "gone with a region", s.Region(g, 1), false)
	want(t, "gone without a hold", s.Unhold(g), false)
	_, errno = s.GetSegment(c, 8, 1, 0, nil)
	want(t, "by key", errno, linux.ENOENT)
	want(t, "gone", s.Region(g, -1), true)
	_, errno = s.Segment(c, id, 0)
	want(t, "by ID", errno, linux.EINVAL)
	want(t, "pages", s.pages, 0)
}

// TestQueue: a full queue makes senders wait, an empty one receivers; removal ends all waits with EIDRM.
func TestQueue(t *testing.T) {
	s, c := New(), root(1)
	id, _ := s.GetQueue(c, 0, 0o600)
	woken := 0
	_, w, _ := s.Receive(c, id, 10, 3, 0, func() { woken++ })
	want(t, "receiver waits", w != nil, true)
	s.Send(c, id, Message{3, []byte("three")}, 0, none)
	want(t, "woken", woken, 1)
	m, _, errno := s.Receive(c, id, 2, 3, linux.MSG_NOERROR, none)
	want(t, "received", errno, 0)
	want(t, "cut", string(m.Text), "th")
	for range s.Limits.QueueBytes / s.Limits.Message {
		s.Send(c, id, Message{1, make([]byte, s.Limits.Message)}, 0, none)
	}
	_, errno = s.Send(c, id, Message{1, []byte("x")}, linux.IPC_NOWAIT, none)
	want(t, "full", errno, linux.EAGAIN)
	sender, _ := s.Send(c, id, Message{1, []byte("x")}, 0, func() { woken++ })
	q, _ := s.Queue(c, id, 0)
	s.RemoveQueue(c, q)
	want(t, "woken by the removal", woken, 2)
	want(t, "result", sender.Errno, linux.EIDRM)
}

// SetTotals counts the semaphores of all sets that exist, and lists no sets for that.
func TestSetTotals(t *testing.T) {
	s, c := New(), root(1)
	s.Limits.Sets = 100
	r := rand.New(rand.NewPCG(1, 1))
	type made struct {
		id int32
		n  int
	}
	var sets []made
	sum := 0
	for range 2000 {
		if n := r.IntN(20); r.IntN(5) > 1 {
			id, errno := s.GetSet(c, 0, n, 0o600)
			want(t, "created", errno == 0, n > 0 && len(sets) < s.Limits.Sets)
			if errno == 0 {
				sets, sum = append(sets, made{id, n}), sum+n
			}
		} else if len(sets) > 0 {
			i := r.IntN(len(sets))
			set, _ := s.Set(c, sets[i].id, 0)
			want(t, "removed", s.RemoveSet(c, set), 0)
			sum -= sets[i].n
			sets = slices.Delete(sets, i, i+1)
		}
		count, all, _ := s.SetTotals()
		want(t, "sets", count, len(sets))
		want(t, "semaphores", all, sum)
	}
	id, _ := s.GetSet(c, 9, 1, linux.IPC_CREAT|0o600)
	again, errno := s.GetSet(c, 9, 1, 0o600)
	_, all, _ := s.SetTotals()
	want(t, "found by key", again, id)
	want(t, "result", errno, 0)
	want(t, "counted once", all, sum+1)
	want(t, "allocations", testing.AllocsPerRun(10, func() { s.SetTotals() }), 0)
}

// The SEM_UNDO adjustments of a call with many operations add up for each semaphore, and the last one may leave the range.
func TestManyAdjustments(t *testing.T) {
	const count, most = 3, 1 << 16
	s, c := New(), root(1)
	id, _ := s.GetSet(c, 0, count, 0o600)
	set, _ := s.Set(c, id, 0)
	undo := Undo{}
	ops := make([]Op, most)
	var sums [count]int
	for i := range ops {
		n, change := i%count, 1-i/count%2*2 // each semaphore is 1 and 0 in turn
		ops[i] = Op{Number: uint16(n), Change: int16(change), Flags: linux.SEM_UNDO}
		sums[n] -= change
	}
	_, errno := s.Operate(c, id, ops, undo, none)
	want(t, "many", errno, 0)
	want(t, "adjustments", [count]int(undo[set]), sums)

	far := Op{Number: 1, Change: MaxValue, Flags: linux.SEM_UNDO}
	back := Op{Number: 1, Change: -MaxValue}
	values := func() (v [count]int) {
		for i := range v {
			v[i], _, _, _, _ = set.Value(i)
		}
		return v
	}
	before := values()
	s.SetValues(c, set, 1, []int{0}, []Undo{undo})
	_, errno = s.Operate(c, id, []Op{far, back, {1, 1, linux.SEM_UNDO}, {1, -1, 0}, {1, 1, linux.SEM_UNDO}}, undo, none)
	want(t, "beyond the range", errno, linux.ERANGE)
	before[1] = 0
	want(t, "values", values(), before)
	want(t, "the adjustment", undo[set][1], 0)
	_, errno = s.Operate(c, id, []Op{far, back, {1, 1, linux.SEM_UNDO}}, undo, none)
	want(t, "at the end of the range", errno, 0)
	want(t, "the adjustment", undo[set][1], -MaxValue-1)
}
