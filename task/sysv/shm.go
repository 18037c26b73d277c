package sysv

import (
	"fmt"
	"strings"

	"loam/abi/linux"
)

// Limits of shared memory: Linux's defaults (/proc/sys/kernel/shmmax, shmall, shmmni).
const (
	MaxSegmentSize  = 1<<64 - 1 - 1<<24 // bytes
	MaxSegmentPages = 1<<64 - 1 - 1<<24 // of all segments
	MaxSegments     = 4096

	pageSize = 4096
)

// Segment is a shared memory segment. Memory belongs to the caller.
type Segment struct {
	Permissions
	Size                    uint64 // bytes
	Attached                int    // regions that show it
	Creator, Last           int32  // process IDs
	Attach, Detach, Changed int64  // times
	Removed                 bool   // IPC_RMID: it goes with the last region
	Memory                  any
	Resident                func() uint64 // pages
	removed                 bool          // it is in no table
	holds                   int           // calls that are about to attach it
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
		case size == 0 || size > MaxSegmentSize:
			return nil, linux.EINVAL
		case size > 1<<46, s.segments.count >= MaxSegments:
			return nil, linux.ENOSPC
		}
		if errno := allocate(g); errno != 0 {
			return nil, errno
		}
		s.pages += pagesOf(size)
		return g, 0
	})
}

// Segment returns a segment that a caller may access. access is 0o444 for reading, 0o666 for both, 0: any caller. Errors:
// EINVAL, EACCES.
func (s *State) Segment(c Caller, id int32, access uint32) (*Segment, linux.Errno) {
	g, errno := s.segments.find(id)
	if errno == 0 && !g.allows(c, access) {
		errno = linux.EACCES
	}
	return g, errno
}

// SegmentAt is Segment by the place in the table.
func (s *State) SegmentAt(c Caller, place int32, access uint32) (*Segment, linux.Errno) {
	g, errno := s.segments.at(place)
	if errno == 0 && !g.allows(c, access) {
		errno = linux.EACCES
	}
	return g, errno
}

// Hold keeps a removed segment during a call that attaches it. Unhold reports whether the segment has gone.
func (g *Segment) Hold() { g.holds++ }

// Unhold is the counterpart of Hold.
func (s *State) Unhold(g *Segment) bool {
	g.holds--
	return s.gone(g)
}

// Region records that a region of a process shows the segment, for n above 0, or no longer. It reports whether the segment has
// gone, so that its memory is freed.
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

// RemoveSegment implements IPC_RMID. It reports whether the segment has gone at once. Errors: EPERM.
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

// SegmentTotals returns the number of segments, their pages, the pages in memory, and the highest place in use.
func (s *State) SegmentTotals() (count int, pages, resident uint64, highest int32) {
	for _, g := range s.segments.all() {
		resident += g.Resident()
	}
	return s.segments.count, s.pages, resident, s.segments.highest()
}

// Lock records that a segment is locked in memory, or no longer (SHM_LOCK, SHM_UNLOCK). Errors: EPERM.
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

// Left records that a process no longer shows the segments with the given memory.
func (s *State) Left(c Caller, memory []any) {
	for _, g := range s.segments.all() {
		for _, m := range memory {
			if g.Memory == m {
				g.Last, g.Detach = c.PID, c.Now
			}
		}
	}
}

// Segments returns the number of segments.
func (s *State) Segments() int { return s.segments.count }

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
