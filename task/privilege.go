package task

import (
	"loam/abi/linux"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/task/family"
)

// privilegeTask is a task as a caller of package privilege.
type privilegeTask struct{ *Task }

// ID implements privilege.Caller.
func (t privilegeTask) ID() int32 { return int32(t.id) }

// Memory implements privilege.Caller.
func (t privilegeTask) Memory() call.Memory { return t.caller.Memory }

// Identity implements privilege.Caller.
func (t privilegeTask) Identity() *credential.Set { return t.creds() }

// Adopt implements privilege.Caller.
func (t privilegeTask) Adopt(c credential.Set) { t.adopt(c, 0) }

// IdentityOf implements privilege.Caller.
func (t privilegeTask) IdentityOf(id int32) (*credential.Set, bool) {
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.tasks[family.PID(id)]; of != nil {
		return of.creds(), true
	}
	return nil, false
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

// adopt makes c the credentials of the task, unless there is an error. A process that may have secrets of another user is
// not dumpable any more, and forgets its parent death signal (prctl(2)).
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
		t.memory().SetLimits(t.process.memoryLimits())
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
