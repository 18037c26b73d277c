package ipc

import (
	"fmt"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/file"
	"loam/task/sysv"
)

// Calls on System V shared memory segments.

// shmget implements shmget(2). Segments of huge pages are not supported (EINVAL).
func shmget(t task, a call.Args) (uint64, linux.Errno) {
	o, flags := t.objects, number(a.A3)
	return t.with(func(state *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
		id, errno := state.GetSegment(c, int32(a.A1), a.A2, flags, func(g *sysv.Segment) linux.Errno {
			if flags&linux.SHM_HUGETLB != 0 {
				return linux.EINVAL
			}
			pages := (a.A2 + mem.PageSize - 1) >> mem.PageShift
			if int64(pages) > o.pages {
				return linux.ENOMEM
			}
			m := mem.NewSegment(o.memory, pages, func() mem.Label {
				return mem.Label{Path: fmt.Sprintf("/SYSV%08x (deleted)", uint32(a.A1)), Minor: 1, Inode: uint64(g.ID), Memory: true}
			}, func(n int) { o.region(g, n) })
			g.Memory, g.Resident = m, m.Resident
			o.segments.Store(true)
			return 0
		})
		return uint64(id), errno
	})
}

// region adds n to the number of mappings of a segment, and frees a removed segment that has no mapping any
// more. The caller holds the lock of a map.
func (i *Objects) region(g *sysv.Segment, n int) {
	i.mu.Lock()
	gone := i.state.Region(g, n)
	i.mu.Unlock()
	if gone {
		g.Memory.(*mem.Shared).Drop()
	}
}

// shmat implements shmat(2). Errors: EINVAL, EACCES, ENOMEM.
func shmat(t task, a call.Args) (uint64, linux.Errno) {
	addr, flags := a.A2, number(a.A3)
	q := mem.Request{Prot: mem.Read | mem.Write, Flags: mem.MapShared}
	access := uint32(0o666)
	if flags&linux.SHM_RDONLY != 0 {
		q.Prot, access, q.Deny = mem.Read, 0o444, mem.MayNotWrite
	}
	if flags&linux.SHM_EXEC != 0 {
		q.Prot, access = q.Prot|mem.Exec, access|0o111
	}
	switch {
	case addr%mem.PageSize != 0 && flags&linux.SHM_RND == 0, addr == 0 && flags&linux.SHM_REMAP != 0:
		return 0, linux.EINVAL
	case addr != 0:
		q.Addr = addr &^ (mem.PageSize - 1)
		if q.Addr == 0 && flags&linux.SHM_REMAP != 0 {
			return 0, linux.EINVAL
		}
		if q.Flags |= mem.MapFixedNoReplace; flags&linux.SHM_REMAP != 0 {
			q.Flags = q.Flags&^mem.MapFixedNoReplace | mem.MapFixed
		}
	}
	i := t.objects
	var g *sysv.Segment
	_, errno := t.with(func(s *sysv.State, c sysv.Caller) (_ uint64, errno linux.Errno) {
		if g, errno = s.Segment(c, int32(a.A1), access); errno == 0 {
			g.Hold()
		}
		return 0, errno
	})
	if errno != 0 {
		return 0, errno
	}
	q.Object, q.Length = g.Memory.(*mem.Shared), g.Size
	at, err := t.Map().Mmap(q)
	now := t.caller()
	i.mu.Lock()
	if err == nil {
		g.Attach, g.Last = now.Now, now.PID
	}
	gone := i.state.Unhold(g)
	i.mu.Unlock()
	if gone {
		g.Memory.(*mem.Shared).Drop()
	}
	if err == error(linux.EEXIST) {
		err = linux.EINVAL
	}
	return at, file.ToErrno(err)
}

// shmdt implements shmdt(2). Errors: EINVAL.
func shmdt(t task, a call.Args) (uint64, linux.Errno) {
	if a.A1%mem.PageSize != 0 {
		return 0, linux.EINVAL
	}
	c, i := t.caller(), t.objects
	err := t.Map().UnmapObject(a.A1, func(o mem.Object) (uint64, bool) {
		m, ok := o.(*mem.Shared)
		if !ok {
			return 0, false
		}
		size, ok := m.Segment()
		if ok {
			i.left(c, m)
		}
		return size, ok
	})
	return 0, file.ToErrno(err)
}

// left records, in the segments with the given memory, that the process of c has detached them now.
func (i *Objects) left(c sysv.Caller, memory ...any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state.Left(c, memory)
}

// LeaveSegments records that the process of c unmaps a range of its memory. It does nothing if no segment has ever existed.
func (i *Objects) LeaveSegments(c Caller, start, end uint64) {
	if !i.segments.Load() {
		return
	}
	var all []any
	c.Map().EachSegment(start, end, func(m *mem.Shared) { all = append(all, m) })
	if len(all) > 0 {
		i.left(task{c, i}.caller(), all...)
	}
}

// shmctl implements shmctl(2).
func shmctl(t task, a call.Args) (uint64, linux.Errno) {
	command := number(a.A2)
	switch command {
	case linux.IPC_INFO, linux.SHM_INFO:
		return t.shmInfo(a.A3, command == linux.SHM_INFO)
	case linux.IPC_STAT, linux.SHM_STAT, linux.SHM_STAT_ANY:
		b := make([]byte, segmentSize)
		id, errno := t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			g, errno := statted(c, a, command == linux.IPC_STAT, command == linux.SHM_STAT_ANY, s.Segment, s.SegmentAt)
			if errno != 0 {
				return 0, errno
			}
			putPermissions(b, &g.Permissions)
			putWords(b[permissionsSize:], g.Size, uint64(g.Attach), uint64(g.Detach), uint64(g.Changed),
				uint64(uint32(g.Creator))|uint64(uint32(g.Last))<<32, uint64(g.Attached))
			if command == linux.IPC_STAT {
				return 0, 0
			}
			return uint64(g.ID), 0
		})
		if errno != 0 {
			return 0, errno
		}
		return id, t.Memory().Write(a.A3, b)
	case linux.IPC_SET:
		_, uid, gid, mode, errno := t.setPermissions(a.A3, segmentSize)
		if errno != 0 {
			return 0, errno
		}
		return t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			g, errno := s.Segment(c, int32(a.A1), 0)
			if errno == 0 {
				if errno = g.Permissions.Set(c, uid, gid, mode); errno == 0 {
					g.Changed = c.Now
				}
			}
			return 0, errno
		})
	case linux.IPC_RMID:
		var m *mem.Shared
		_, errno := t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			g, errno := s.Segment(c, int32(a.A1), 0)
			if errno != 0 {
				return 0, errno
			}
			gone, errno := s.RemoveSegment(c, g)
			if gone {
				m = g.Memory.(*mem.Shared)
			}
			return 0, errno
		})
		if m != nil {
			m.Drop()
		}
		return 0, errno
	case linux.SHM_LOCK, linux.SHM_UNLOCK: // locking has no effect, because memory is never swapped out
		return t.with(func(s *sysv.State, c sysv.Caller) (uint64, linux.Errno) {
			g, errno := s.Segment(c, int32(a.A1), 0)
			if errno == 0 {
				errno = g.Lock(c, command == linux.SHM_LOCK)
			}
			return 0, errno
		})
	}
	return 0, linux.EINVAL
}

// shmInfo implements IPC_INFO and SHM_INFO.
func (t task) shmInfo(at uint64, now bool) (uint64, linux.Errno) {
	const limits, totals, least = 72, 48, 1
	b := make([]byte, limits)
	highest, errno := t.with(func(s *sysv.State, _ sysv.Caller) (uint64, linux.Errno) {
		count, pages, resident, highest := s.SegmentTotals()
		if now {
			b = b[:totals]
			putWords(b, uint64(count), pages, resident)
		} else {
			n := uint64(s.Limits.Segments)
			putWords(b, s.Limits.SegmentSize, least, n, n, s.Limits.SegmentPages)
		}
		return uint64(highest), 0
	})
	if errno == 0 {
		errno = t.Memory().Write(at, b)
	}
	return highest, errno
}
