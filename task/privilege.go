package task

import (
	"cmp"

	"loam/abi/linux"
	"loam/posix/credential"
	"loam/task/family"
)

// Adopt implements privilege.Caller.
func (t callTask) Adopt(c credential.Set) { t.adopt(c, 0) }

// IdentityOf implements privilege.Caller.
func (t callTask) IdentityOf(id int32) (*credential.Set, bool) {
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.tasks[family.PID(id)]; of != nil {
		return of.creds(), true
	}
	if p := cmp.Or(s.processes[family.PID(id)], s.zombies[family.PID(id)]); p != nil {
		return p.creds(), true
	}
	root := credential.New(0, 0) // process 1, if it is the kernel
	return &root, family.PID(id) == s.root.PID
}

// creds returns the credentials of the task, which are not modified. Any goroutine may call it.
func (t *Task) creds() *credential.Set { return t.caller.Process.Identity() }

// creds returns the credentials of the first thread of the process. The caller holds System.mu.
func (p *Process) creds() *credential.Set {
	if len(p.tasks) > 0 {
		p.lastCreds = p.tasks[0].creds()
	}
	return p.lastCreds
}

// adopt sets the credentials of the task to c, unless errno is set. If the process may then hold secrets of another user, it
// is no longer dumpable, and its parent death signal is cleared (prctl(2)).
func (t *Task) adopt(c credential.Set, errno linux.Errno) (uint64, linux.Errno) {
	if errno != 0 {
		return 0, errno
	}
	old := t.creds()
	if c.UID != old.UID {
		p, s := t.process, t.process.system
		s.mu.Lock()
		p.exceeded = s.processesOf(c.UID) >= p.limits[linux.RLIMIT_NPROC].Cur && c.UID != 0
		s.mu.Unlock()
	}
	if c.MorePrivileged(old) {
		t.process.dumpable.Store(false)
		t.process.deathSignal.Store(0)
	}
	t.caller.Process.ChangeIdentity(c)
	if c.Has(linux.CAP_IPC_LOCK) != old.Has(linux.CAP_IPC_LOCK) {
		t.process.system.mu.Lock()
		if a := t.memory(); a != nil {
			a.SetLimits(t.process.memoryLimits(t.process.creds()))
		}
		t.process.system.mu.Unlock()
	}
	return 0, 0
}

// maySignal reports whether the task may send a signal to a process (kill(2)). The caller holds System.mu.
func (t *Task) maySignal(to *Process, n int) bool {
	return to == t.process || t.creds().MaySignal(to.creds()) || n == linux.SIGCONT && to.node.Session == t.process.node.Session
}

// mayInspect reports whether the task may read the state of a process (ptrace(2)). fsids selects the check that Linux makes for
// files of /proc. The caller holds System.mu.
func (t *Task) mayInspect(p *Process, fsids bool) bool {
	return p == t.process || t.creds().MayTrace(p.creds(), p.dumpable.Load(), fsids)
}

// processesOf returns the number of tasks whose real user is uid. The caller holds System.mu.
func (s *System) processesOf(uid uint32) (n uint64) {
	for _, t := range s.tasks {
		if t.creds().UID == uid {
			n++
		}
	}
	return n
}
