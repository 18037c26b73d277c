package task

import (
	"loam/abi/linux"
	"loam/task/family"
	"loam/task/schedule"
)

// This file connects tasks to package schedule, which implements the calls about scheduling. System.mu guards schedule.Traits.

// Traits implements schedule.Thread.
func (t callTask) Traits() *schedule.Traits { return &t.traits }

// hasIOPriority reports whether the first thread has an I/O priority. On Linux, the thread then has an I/O context.
func (p *Process) hasIOPriority() bool {
	p.system.mu.Lock()
	defer p.system.mu.Unlock()
	return len(p.tasks) > 0 && p.tasks[0].traits.HasIOPriority()
}

// Limit implements schedule.Thread.
func (t callTask) Limit(resource int) uint64 { return t.process.limits[resource].Cur }

// Bind implements schedule.Thread.
func (t callTask) Bind() {
	if !t.closed {
		t.thread.Bind(t.traits.Bound())
	}
}

// CPUs, CPU and Rest implement schedule.Caller.
func (t callTask) CPUs() int { return t.process.system.config.CPUs }
func (t callTask) CPU() int  { return t.thread.CPU() }
func (t callTask) Rest()     { t.thread.Rest() }

// With implements schedule.Caller.
func (t callTask) With(id uint64, f func(schedule.Thread) (uint64, linux.Errno)) (uint64, linux.Errno) {
	return t.withTask(id, func(of *Task) (uint64, linux.Errno) { return f(callTask{of}) })
}

// Select implements schedule.Caller.
func (t callTask) Select(which int, who uint64, f func([]schedule.Thread) (uint64, linux.Errno)) (uint64, linux.Errno) {
	return locked(t.Task, func() (uint64, linux.Errno) {
		all, errno := t.selected(which, who)
		if errno != 0 {
			return 0, errno
		}
		threads := make([]schedule.Thread, len(all))
		for i, of := range all {
			threads[i] = callTask{of}
		}
		return f(threads)
	})
}

// withTask calls f with the task that has the given ID, or with the calling task if the ID is 0. It holds System.mu during the
// call. Errors: EINVAL, ESRCH.
func (t *Task) withTask(id uint64, f func(*Task) (uint64, linux.Errno)) (uint64, linux.Errno) {
	n := number(id)
	if n < 0 {
		return 0, linux.EINVAL
	}
	return locked(t, func() (uint64, linux.Errno) {
		of := t
		if n != 0 {
			if of = t.process.system.tasks[family.PID(n)]; of == nil {
				return 0, linux.ESRCH
			}
		}
		return f(of)
	})
}

// selected returns the tasks that the arguments of getpriority(2) or setpriority(2) select. The caller holds
// System.mu. Errors: EINVAL, ESRCH.
func (t *Task) selected(which int, who uint64) (all []*Task, errno linux.Errno) {
	s, id := t.process.system, family.PID(number(who))
	switch which {
	case linux.PRIO_PROCESS:
		if id == 0 {
			return []*Task{t}, 0
		}
		if of := s.tasks[id]; of != nil {
			all = append(all, of)
		}
	case linux.PRIO_PGRP:
		if id == 0 {
			id = t.process.node.Group
		}
		for _, p := range s.group(id) {
			all = append(all, p.tasks...)
		}
	case linux.PRIO_USER:
		uid := uint32(who)
		if uid == 0 {
			uid = t.creds().UID
		}
		for _, of := range s.tasks {
			if of.creds().UID == uid {
				all = append(all, of)
			}
		}
	default:
		return nil, linux.EINVAL
	}
	if len(all) == 0 {
		return nil, linux.ESRCH
	}
	return all, 0
}
