package task

import (
	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/file"
)

// memoryCalls are the calls on the memory of a process. Package mem has the rules; decoding is here.
var memoryCalls = map[int]serveFunc{
	linux.SYS_MMAP: mmap,
	linux.SYS_MUNMAP: func(t *Task, a call.Args) (uint64, linux.Errno) {
		if err := t.memory().Removable(a.A1, a.A1+a.A2); err != nil {
			return 0, file.ToErrno(err)
		}
		t.leaveSegments(a.A1, a.A1+a.A2)
		return 0, file.ToErrno(t.memory().Munmap(a.A1, a.A2))
	},
	linux.SYS_MSEAL:    onMap(func(m *mem.Map, a call.Args) error { return m.Seal(a.A1, a.A2, a.A3) }),
	linux.SYS_MPROTECT: onMap(func(m *mem.Map, a call.Args) error { return m.Mprotect(a.A1, a.A2, uint32(a.A3)) }),
	linux.SYS_BRK:      func(t *Task, a call.Args) (uint64, linux.Errno) { return t.memory().Brk(a.A1), 0 },
	linux.SYS_MREMAP: func(t *Task, a call.Args) (uint64, linux.Errno) {
		addr, err := t.memory().Mremap(a.A1, a.A2, a.A3, uint32(a.A4), a.A5)
		return addr, file.ToErrno(err)
	},
	linux.SYS_REMAP_FILE_PAGES: onMap(func(m *mem.Map, a call.Args) error {
		return m.RemapFilePages(a.A1, a.A2, uint32(a.A3), a.A4, uint32(a.A5))
	}),
	linux.SYS_MADVISE:    onMap(func(m *mem.Map, a call.Args) error { return m.Madvise(a.A1, a.A2, number(a.A3)) }),
	linux.SYS_MSYNC:      onMap(func(m *mem.Map, a call.Args) error { return m.Msync(a.A1, a.A2, uint32(a.A3)) }),
	linux.SYS_MINCORE:    mincore,
	linux.SYS_MLOCK:      onMap(func(m *mem.Map, a call.Args) error { return m.Mlock(a.A1, a.A2, 0) }),
	linux.SYS_MLOCK2:     onMap(func(m *mem.Map, a call.Args) error { return m.Mlock(a.A1, a.A2, uint32(a.A3)) }),
	linux.SYS_MUNLOCK:    onMap(func(m *mem.Map, a call.Args) error { return m.Munlock(a.A1, a.A2) }),
	linux.SYS_MLOCKALL:   onMap(func(m *mem.Map, a call.Args) error { return m.Mlockall(uint32(a.A1)) }),
	linux.SYS_MUNLOCKALL: func(t *Task, _ call.Args) (uint64, linux.Errno) { t.memory().Munlockall(); return 0, 0 },
}

// onMap returns the function for a call that changes the memory of the process.
func onMap(f func(m *mem.Map, a call.Args) error) serveFunc {
	return func(t *Task, a call.Args) (uint64, linux.Errno) { return 0, file.ToErrno(f(t.memory().Map, a)) }
}

// mmap implements mmap(2).
func mmap(t *Task, a call.Args) (uint64, linux.Errno) {
	const prots = mem.Read | mem.Write | mem.Exec
	q := mem.Request{Addr: a.A1, Length: a.A2, Prot: mem.Prot(a.A3) & prots, Flags: uint32(a.A4), Offset: a.A6}
	if q.Flags&linux.MAP_ANONYMOUS == 0 {
		release, errno := t.process.system.files.Request(&q, t.caller.Process, number(a.A5))
		if errno != 0 {
			return 0, errno
		}
		defer release()
	} else {
		q.Offset = 0
	}
	addr, err := t.memory().Mmap(q)
	return addr, file.ToErrno(err)
}

// mincore implements mincore(2).
func mincore(t *Task, a call.Args) (uint64, linux.Errno) {
	const most = 1 << 20 // maximum number of pages in one call
	pages := (a.A2 + mem.PageSize - 1) / mem.PageSize
	if pages > most {
		return 0, linux.ENOMEM
	}
	present := make([]byte, pages)
	if err := t.memory().Mincore(a.A1, a.A2, present); err != nil {
		return 0, file.ToErrno(err)
	}
	return 0, t.caller.Memory.Write(a.A3, present)
}

// leaveSegments records that the process stops using a range of its memory, for System V's shared memory (package ipc).
func (t *Task) leaveSegments(start, end uint64) {
	t.process.system.ipc.LeaveSegments(callTask{t}, start, end)
}

// leaveMemory records that the process stops using all of its memory, unless another process shares the memory.
func (t *Task) leaveMemory() {
	if t.memory().users.Load() == 1 {
		t.leaveSegments(0, mem.End)
	}
}
