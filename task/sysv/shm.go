package sysv

import (
	"fmt"
	"strings"

	"loam/abi/linux"
)

const pageSize = 4096

// Segment is a shared memory segment. Memory belongs to the caller.
type Segment struct {
	Permissions
	Size                    uint64 // size in bytes
	Attached                int    // number of regions of processes that map the segment
	Creator, Last           int32  // process IDs of the creator and of the process that attached or detached the segment last
	Attach, Detach, Changed int64  // times of the last attach, detach and change, in seconds since 1970
	Removed                 bool   // IPC_RMID was called: the segment is freed when the last region ends
	Memory                  any
	Resident                func() uint64 // returns the number of pages in memory
	removed                 bool          // the segment is not in the table any more
	holds                   int           // number of calls that are about to attach the segment
}

func (g *Segment) permissions() *Permissions { return &g.Permissions }

func pagesOf(size uint64) uint64 { return (size + pageSize - 1) / pageSize }

// GetSegment implements shmget(2). allocate returns the memory of a new segment. Errors: EINVAL, ENOSPC, ENOENT, EEXIST, EACCES.
func (s *State) GetSegment(c Caller, key int32, size uint64, flags int, allocate func(g *Segment) linux.Errno) (int32, linux.Errno) {
	return s.segments.get(c, key, flags, func(g *Segment) linux.Errno {
		if g.Size < size {
			return linux.EINVAL
		}
		return 0
	}, func(p Permissions) (*Segment, linux.Errno) {
		g := &Segment{Permissions: p, Size: size, Creator: c.PID, Changed: c.Now}
		switch {
		case size == 0 || size > s.Limits.SegmentSize:
			return nil, linux.EINVAL
		case size > 1<<46, s.pages+pagesOf(size) > s.Limits.SegmentPages, s.segments.count >= s.Limits.Segments:
			return nil, linux.ENOSPC
		}
		if errno := allocate(g); errno != 0 {
			return nil, errno
		}
		s.pages += pagesOf(size)
		return g, 0
	})
}

// Segment returns the segment with an ID, if the caller may access it. access is 0o444 for reading, 0o666 for reading and
// writing, and 0 for no check. Errors: EINVAL, EACCES.
func (s *State) Segment(c Caller, id int32, access uint32) (*Segment, linux.Errno) {
	g, errno := s.segments.find(id)
	if errno == 0 && !g.allows(c, access) {
		errno = linux.EACCES
	}
	return g, errno
}

// SegmentAt returns the segment at an index of the table, if the caller may access it. access is as for
// Segment.
func (s *State) SegmentAt(c Caller, place int32, access uint32) (*Segment, linux.Errno) {
	g, errno := s.segments.at(place)
	if errno == 0 && !g.allows(c, access) {
		errno = linux.EACCES
	}
	return g, errno
}

// Hold prevents that a segment is freed during a call that attaches it.
func (g *Segment) Hold() { g.holds++ }

// Unhold ends the effect of Hold. It reports whether the segment is no longer used, so that the caller frees its memory.
func (s *State) Unhold(g *Segment) bool {
	g.holds--
	return s.gone(g)
}

// Region records that a process maps the segment in one more region, or if n is negative in one region less. It reports
// whether the segment is no longer used, so that the caller frees its memory.
func (s *State) Region(g *Segment, n int) bool {
	g.Attached += n
	return s.gone(g)
}

func (s *State) gone(g *Segment) bool {
	if !g.Removed || g.removed || g.Attached+g.holds > 0 {
		return false
	}
	g.removed = true
	s.pages -= pagesOf(g.Size)
	s.segments.remove(g)
	return true
}

// RemoveSegment implements IPC_RMID. It reports whether the segment is not in use, so that the caller frees its memory at
// once. Errors: EPERM.
func (s *State) RemoveSegment(c Caller, g *Segment) (bool, linux.Errno) {
	if !g.owns(c) {
		return false, linux.EPERM
	}
	const destroyed = 0o1000
	g.Removed = true
	g.Mode |= destroyed
	s.segments.forgetKey(g)
	return s.gone(g), 0
}

// SegmentTotals returns the number of segments, their pages, the pages in memory, and the highest index of the table
// in use.
func (s *State) SegmentTotals() (count int, pages, resident uint64, highest int32) {
	for _, g := range s.segments.all() {
		resident += g.Resident()
	}
	return s.segments.count, s.pages, resident, s.segments.highest()
}

// Lock records whether a segment is locked in memory (SHM_LOCK, SHM_UNLOCK). Errors: EPERM.
func (g *Segment) Lock(c Caller, on bool) linux.Errno {
	const locked = 0o2000
	switch {
	case !c.Has(linux.CAP_IPC_LOCK) && c.UID != g.UID && c.UID != g.CUID:
		return linux.EPERM
	case on:
		g.Mode |= locked
	default:
		g.Mode &^= locked
	}
	return 0
}

// Left records that a process has unmapped the segments with the given memory.
func (s *State) Left(c Caller, memory []any) {
	for _, g := range s.segments.all() {
		for _, m := range memory {
			if g.Memory == m {
				g.Last, g.Detach = c.PID, c.Now
			}
		}
	}
}

// SegmentText returns /proc/sysvipc/shm.
func (s *State) SegmentText() string {
	var b strings.Builder
	b.WriteString("       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n")
	for _, g := range s.segments.all() {
		fmt.Fprintf(&b, "%10d %10d  %4o %21d %5d %5d  %5d %5d %5d %5d %5d %10d %10d %10d %21d %21d\n", g.Key, g.ID, g.Mode, g.Size,
			g.Creator, g.Last, g.Attached, g.UID, g.GID, g.CUID, g.CGID, g.Attach, g.Detach, g.Changed, g.Resident()*pageSize, 0)
	}
	return b.String()
}
