package task

import (
	"cmp"
	"slices"

	"loam/abi/linux"
	"loam/fs"
	"loam/mem"
	"loam/posix"
	"loam/posix/call"
	"loam/task/clone"
	"loam/task/family"
	"loam/task/mount"
	"loam/task/procfs"
	"loam/task/signal"
	"loam/task/vector"
)

// pidfdCalls are the calls on descriptors of processes, and on other processes.
var pidfdCalls = map[int]serveFunc{
	linux.SYS_PIDFD_OPEN:        pidfdOpen,
	linux.SYS_PIDFD_SEND_SIGNAL: pidfdSendSignal,
	linux.SYS_PIDFD_GETFD:       pidfdGetfd,
	linux.SYS_PROCESS_VM_READV: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return vector.Copy(t.caller.Memory, a, false, t.inspectedMemory)
	},
	linux.SYS_PROCESS_VM_WRITEV: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return vector.Copy(t.caller.Memory, a, true, t.inspectedMemory)
	},
	linux.SYS_PROCESS_MADVISE: func(t *Task, a call.Args) (uint64, linux.Errno) {
		var own *mem.Map // nil for the program in ring 0
		if m := t.memory(); m != nil {
			own = m.Map
		}
		return vector.Madvise(t.caller.Memory, own, a, t.creds().Has(linux.CAP_SYS_NICE), t.watchedMemory)
	},
	linux.SYS_PROCESS_MRELEASE: processMrelease,
	linux.SYS_KCMP:             kcmp,
	linux.SYS_RT_SIGQUEUEINFO: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.queueSignal(0, number(a.A1), number(a.A2), a.A3)
	},
	linux.SYS_RT_TGSIGQUEUEINFO: func(t *Task, a call.Args) (uint64, linux.Errno) {
		if number(a.A1) <= 0 || number(a.A2) <= 0 {
			return 0, linux.EINVAL
		}
		return t.queueSignal(number(a.A1), number(a.A2), number(a.A3), a.A4)
	},
	linux.SYS_PERSONALITY: func(t *Task, a call.Args) (uint64, linux.Errno) {
		const ask = 0xffffffff
		old := t.process.persona.Load()
		if uint32(a.A1) != ask {
			t.process.persona.Store(uint32(a.A1))
		}
		return uint64(old), 0
	},
	linux.SYS_UNSHARE: unshare,
	linux.SYS_CLOSE_RANGE: func(t *Task, a call.Args) (uint64, linux.Errno) {
		if uint32(a.A3)&^linux.CLOSE_RANGE_CLOEXEC == linux.CLOSE_RANGE_UNSHARE && uint32(a.A1) <= uint32(a.A2) {
			unshare(t, call.Args{A1: linux.CLONE_FILES}) // fails in a process with several threads, which share the table
		}
		return 0, t.caller.Process.CloseRange(uint32(a.A1), uint32(a.A2), number(a.A3))
	},
	linux.SYS_SETNS: func(t *Task, a call.Args) (uint64, linux.Errno) {
		threads, _ := locked(t, func() (uint64, linux.Errno) { return uint64(len(t.process.tasks)), 0 })
		own := t.process.posix
		shares := func(q *posix.Process) bool { return q != own && q.SharesPlace(own) }
		p, errno := t.watched(a.A1)
		target := func() (*fs.Tree, linux.Errno) {
			if errno := t.checkInspect(p, false, linux.EPERM); errno != 0 {
				return nil, errno
			}
			return p.show().Tree(), 0
		}
		return 0, mount.SetNS(t.caller, a, threads == 1, slices.ContainsFunc(groups{t.process.system}.List(), shares), errno != linux.EBADF, target)
	},
}

// exists reports whether the process runs, or is a zombie that its parent has not waited for yet; nil does not exist. The caller
// holds System.mu.
func (p *Process) exists() bool {
	return p != nil && (p.system.processes[p.node.PID] == p || p.system.zombies[p.node.PID] == p)
}

// watched returns the process of a pidfd. Errors: EBADF; ESRCH if the process does not exist, as exists.
func (t *Task) watched(fd uint64) (*Process, linux.Errno) {
	of, _, errno := t.caller.Process.WatchedProcess(number(fd))
	if errno != 0 {
		return nil, errno
	}
	s, pid := t.process.system, family.PID(of.PID())
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := cmp.Or(s.processes[pid], s.zombies[pid]); p != nil && of == p.ref {
		return p, 0
	}
	return nil, linux.ESRCH
}

// signalled returns the process of a pidfd, which may not exist, or of a directory of a process in /proc. Errors: EBADF, ESRCH.
func (t *Task) signalled(fd uint64) (*Process, linux.Errno) {
	p, errno := t.watched(fd)
	if errno != linux.EBADF {
		return p, 0
	}
	dir, failed := t.caller.Process.Node(number(fd))
	pid, ok := procfs.ProcessOf(dir)
	if failed != 0 || !ok {
		return nil, errno
	}
	t.process.system.mu.Lock()
	defer t.process.system.mu.Unlock()
	if p = t.process.system.processes[family.PID(pid)]; p == nil {
		return nil, linux.ESRCH
	}
	return p, 0
}

// pidfdOpen implements pidfd_open(2). Errors: EINVAL, also for a thread that is not the first of its process; ESRCH, EMFILE.
func pidfdOpen(t *Task, a call.Args) (uint64, linux.Errno) {
	pid, s := family.PID(number(a.A1)), t.process.system
	if uint32(a.A2)&^linux.O_NONBLOCK != 0 || pid <= 0 {
		return 0, linux.EINVAL
	}
	s.mu.Lock()
	p := cmp.Or(s.processes[pid], s.zombies[pid])
	thread := s.tasks[pid] != nil
	s.mu.Unlock()
	switch {
	case p == nil && thread:
		return 0, linux.EINVAL
	case p == nil:
		return 0, linux.ESRCH
	}
	fd, errno := t.caller.Process.InstallProcess(p.ref, number(a.A2))
	return uint64(fd), errno
}

// installProcess opens a pidfd, and stores its number at an address. Errors: EMFILE, EFAULT.
func (t *Task) installProcess(p *Process, addr uint64) linux.Errno {
	fd, errno := t.caller.Process.InstallProcess(p.ref, 0)
	if errno == 0 {
		if errno = (memory{t}).setWord(addr, uint32(fd)); errno != 0 {
			t.caller.Process.CloseProcess(fd, p.ref)
		}
	}
	return errno
}

// pidfdSendSignal implements pidfd_send_signal(2). Errors: EBADF, EINVAL, EPERM, ESRCH, EFAULT.
func pidfdSendSignal(t *Task, a call.Args) (uint64, linux.Errno) {
	n := number(a.A2)
	if a.A4 != 0 {
		return 0, linux.EINVAL
	}
	p, errno := t.signalled(a.A1)
	if errno != 0 {
		return 0, errno
	}
	i := t.sender(signal.Info{Signal: signal.Number(n), Code: signal.CodeUser})
	if a.A3 != 0 {
		if i, errno = t.info(a.A3, n, p == t.process); errno != 0 {
			return 0, errno
		}
	}
	if n < 0 || n > int(signal.Last) {
		return 0, linux.EINVAL
	}
	return locked(t, func() (uint64, linux.Errno) {
		switch {
		case !p.exists():
			return 0, linux.ESRCH
		case p.ref.Ended():
			return 0, 0
		}
		return 0, t.sendTo(p, i)
	})
}

// info reads a siginfo_t from the caller's memory, as signal.CheckInfo. Errors: EFAULT, EPERM, EINVAL.
func (t *Task) info(addr uint64, n int, own bool) (i signal.Info, errno linux.Errno) {
	b := make([]byte, signal.InfoSize)
	if errno := t.caller.Memory.Read(b, addr); errno != 0 {
		return i, errno
	}
	return signal.CheckInfo(b, n, own)
}

// queueSignal implements rt_sigqueueinfo(2), and rt_tgsigqueueinfo(2) for a thread of the process group. Errors: EFAULT,
// EPERM, EINVAL, ESRCH, EAGAIN.
func (t *Task) queueSignal(group, id, n int, addr uint64) (uint64, linux.Errno) {
	own := group == 0 && id == t.PID() || group == t.PID()
	i, errno := t.info(addr, 0, own)
	switch {
	case errno != 0:
		return 0, errno
	case n < 0 || n > int(signal.Last):
		return 0, linux.EINVAL
	}
	i.Signal = signal.Number(n)
	return locked(t, func() (uint64, linux.Errno) {
		s := t.process.system
		if group == 0 {
			if id <= 0 {
				return 0, linux.ESRCH
			}
			return 0, t.killOne(family.PID(id), i)
		}
		to := s.tasks[family.PID(id)]
		switch {
		case to == nil || to.process.PID() != group:
			return 0, linux.ESRCH
		case !t.maySignal(to.process, n):
			return 0, linux.EPERM
		case n > 0:
			return 0, to.process.send(to, i)
		}
		return 0, 0
	})
}

// PID returns the ID of the task's process.
func (t *Task) PID() int { return t.process.PID() }

// inspected returns the process that has a thread with an ID, if the task may trace it. Errors: ESRCH, EPERM.
func (t *Task) inspected(id uint64) (p *Process, errno linux.Errno) {
	_, errno = t.withTask(id, func(of *Task) (uint64, linux.Errno) {
		if p = of.process; !t.mayInspect(p, false) {
			return 0, linux.EPERM
		}
		return 0, 0
	})
	if errno == linux.EINVAL {
		errno = linux.ESRCH
	}
	return p, errno
}

// pidfdGetfd implements pidfd_getfd(2). Errors: EBADF, EINVAL, EPERM, ESRCH, EMFILE.
func pidfdGetfd(t *Task, a call.Args) (uint64, linux.Errno) {
	if a.A3 != 0 {
		return 0, linux.EINVAL
	}
	p, errno := t.watched(a.A1)
	if errno != 0 {
		return 0, errno
	}
	if errno = t.checkInspect(p, false, linux.EPERM); errno != 0 {
		return 0, errno
	}
	fd, errno := t.caller.Process.Receive(p.files(), number(a.A2))
	return uint64(fd), errno
}

// inspectedMemory returns the memory of the process that has a thread with an ID, as vector.Find. Errors: ESRCH, EPERM.
func (t *Task) inspectedMemory(id uint64) (m *mem.Map, leave func(), errno linux.Errno) {
	p, errno := t.inspected(id)
	if errno != 0 {
		return nil, nil, errno
	}
	return t.memoryOf(p, false, linux.EPERM)
}

// watchedMemory returns the memory of the process of a pidfd, as vector.Find. Errors: EBADF, EACCES, ESRCH.
func (t *Task) watchedMemory(fd uint64) (m *mem.Map, leave func(), errno linux.Errno) {
	p, errno := t.watched(fd)
	if errno != 0 {
		return nil, nil, errno
	}
	return t.memoryOf(p, true, linux.EACCES)
}

// checkInspect checks that a process has not ended, and that the task may inspect it, as mayInspect. Errors: ESRCH, denied.
func (t *Task) checkInspect(p *Process, fsids bool, denied linux.Errno) linux.Errno {
	t.process.system.mu.Lock()
	defer t.process.system.mu.Unlock()
	switch {
	case !p.exists() || p.ref.Ended():
		return linux.ESRCH
	case !t.mayInspect(p, fsids):
		return denied
	}
	return 0
}

// memoryOf returns the memory of a process, as vector.Find. A task may always use its own memory. Errors: those of checkInspect.
func (t *Task) memoryOf(p *Process, fsids bool, denied linux.Errno) (m *mem.Map, leave func(), errno linux.Errno) {
	if m, leave = p.lend(); m == nil {
		return nil, nil, linux.ESRCH
	}
	errno = t.checkInspect(p, fsids, denied) // after lend: execve may have changed the memory and the credentials
	if errno == 0 || errno == denied && p.space.Load() == t.memory() {
		return m, leave, 0
	}
	leave() // without System.mu, because it may free the memory
	return nil, nil, errno
}

// processMrelease implements process_mrelease(2): it waits until a process that a signal has killed has freed its memory.
// Errors: EINVAL unless all processes that share the memory end; EBADF, ESRCH, EINTR.
func processMrelease(t *Task, a call.Args) (uint64, linux.Errno) {
	if uint32(a.A2) != 0 {
		return 0, linux.EINVAL
	}
	p, errno := t.watched(a.A1)
	if errno != 0 {
		return 0, errno
	}
	_, errno = locked(t, func() (uint64, linux.Errno) {
		if !p.exists() || p.ref.Ended() {
			return 0, linux.ESRCH
		}
		for _, other := range p.system.processes {
			if other.space.Load() == p.space.Load() && !other.ending {
				return 0, linux.EINVAL
			}
		}
		return 0, 0
	})
	if errno == 0 {
		errno = t.awaitDespiteSignals(p.Done())
	}
	return 0, errno
}

// kcmp implements kcmp(2): 0 if two processes share a resource or both lack it, and otherwise the order of the two. Errors:
// ESRCH, EPERM, EBADF, EINVAL.
func kcmp(t *Task, a call.Args) (uint64, linux.Errno) {
	one, errno := t.inspected(a.A1)
	if errno != 0 {
		return 0, errno
	}
	two, errno := t.inspected(a.A2)
	if errno != 0 {
		return 0, errno
	}
	x, y := uint64(one.PID()), uint64(two.PID())
	shared := one == two
	switch number(a.A3) {
	case linux.KCMP_FILE:
		if x, errno = one.files().FileOrder(number(a.A4)); errno == 0 {
			y, errno = two.files().FileOrder(number(a.A5))
		}
		if errno != 0 {
			return 0, errno
		}
		shared = x == y
	case linux.KCMP_VM:
		shared = one.space.Load() == two.space.Load()
	case linux.KCMP_FILES:
		shared = one.files().SharesTable(two.files())
	case linux.KCMP_FS:
		shared = one.files().SharesPlace(two.files())
	case linux.KCMP_SIGHAND:
	case linux.KCMP_IO:
		shared = shared || !one.hasIOPriority() && !two.hasIOPriority()
	case linux.KCMP_SYSVSEM:
		shared = shared || !one.system.ipc.Adjusts(int32(x)) && !one.system.ipc.Adjusts(int32(y))
	default:
		return 0, linux.EINVAL
	}
	switch {
	case shared:
		return 0, 0
	case x < y:
		return 1, 0
	}
	return 2, 0
}

// unshare implements unshare(2). A process can separate only its mount namespace. Errors: EINVAL, EPERM.
func unshare(t *Task, a call.Args) (uint64, linux.Errno) {
	p, s := t.process, t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	u, errno := clone.ParseUnshare(a.A1, len(p.tasks) == 1, t.creds().Has(linux.CAP_SYS_ADMIN))
	if errno != 0 || u == (clone.Unshare{}) {
		return 0, errno
	}
	keep := posix.SharePlace | posix.ShareDescriptors
	if u.Place {
		keep &^= posix.SharePlace
	}
	if u.Descriptors {
		keep &^= posix.ShareDescriptors
	}
	creds := *t.creds()
	p.posix = p.posix.Unshare(keep)
	t.callAs(p.posix, &creds)
	if u.Mounts {
		p.posix.CopyMounts()
	}
	return 0, 0
}
