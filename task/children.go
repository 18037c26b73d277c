package task

import (
	"loam/abi/linux"
	"loam/posix/file"
	"loam/task/account"
	"loam/task/family"
	"loam/task/wait"
)

// This file lets a thread wait for children of its process. The calls are in package wait.

// WaitFor implements wait.Caller.
func (t callTask) WaitFor(of family.Selector, w wait.Wanted, poll bool) (family.Report, *account.Usage, linux.Errno) {
	p, s := t.process, t.process.system
	for {
		s.mu.Lock()
		var only *Task
		if w.Own {
			only, w.Of = t.Task, t.created
		}
		r, some := p.tracedNews(only, of, w.Wanted)
		used, err := &account.Usage{}, error(nil)
		if r.Event == family.Nothing {
			if r, err = s.tree.Wait(p.node, of, w.Wanted); some {
				err = nil
			}
			used = p.reap(r, w.Keep)
		}
		news := p.news
		s.mu.Unlock()
		if err != nil || r.Event != family.Nothing || poll {
			return r, used, file.ToErrno(err)
		}
		if errno := t.await(news, forever); errno != 0 {
			return r, used, errno
		}
	}
}

// created reports whether a child belongs to the task: its creator is the task, or has ended, and the task is the oldest.
func (t *Task) created(creator family.PID) bool {
	of := t.process.system.tasks[creator]
	return of == t || (of == nil || of.process != t.process) && t == t.process.tasks[0]
}

// reap returns the resources that a reported child has used. If the child has ended, its resources are added to the
// total of the process's children, unless keep is set (WNOWAIT). The caller holds System.mu.
func (p *Process) reap(r family.Report, keep bool) *account.Usage {
	used, s := &account.Usage{}, p.system
	child := s.zombies[r.PID]
	if child == nil {
		child = s.processes[r.PID]
	}
	if child == nil {
		return used
	}
	used.Add(child.used())
	used.Add(&child.children)
	if r.Event == family.Exited && !keep {
		p.children.Add(used)
		delete(s.zombies, r.PID)
	}
	return used
}

// forget removes the record of a process that is not waited for any more. The caller holds System.mu.
func (s *System) forget(pid family.PID) {
	if s.tree.Find(pid) == nil {
		delete(s.zombies, pid)
	}
}

// Watched implements wait.Caller.
func (t callTask) Watched(fd uint64) (family.PID, bool, linux.Errno) {
	of, nonblocking, errno := t.caller.Process.WatchedProcess(number(fd))
	if errno != 0 {
		return 0, false, errno
	}
	return family.PID(of.PID()), nonblocking, 0
}
