package task

import (
	"loam/abi/linux"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/task/family"
	"loam/task/schedule"
)

// The calls about scheduling: see package schedule.

// scheduleTask is a task as a caller of package schedule. System.mu is the lock of traits.
type scheduleTask struct{ *Task }

// Traits implements schedule.Thread.
func (t scheduleTask) Traits() *schedule.Traits { return &t.traits }

// Identity implements schedule.Thread.
func (t scheduleTask) Identity() *credential.Set { return t.creds() }

// Limit implements schedule.Thread.
func (t scheduleTask) Limit(resource int) uint64 { return t.process.limits[resource].Cur }

// Memory implements schedule.Caller.
func (t scheduleTask) Memory() call.Memory { return t.caller.Memory }

// CPUs implements schedule.Caller.
func (t scheduleTask) CPUs() int { return t.process.system.config.CPUs }

// With implements schedule.Caller.
func (t scheduleTask) With(id uint64, f func(schedule.Thread) (uint64, linux.Errno)) (uint64, linux.Errno) {
	return t.withTask(id, func(of *Task) (uint64, linux.Errno) { return f(scheduleTask{of}) })
}

// Select implements schedule.Caller.
func (t scheduleTask) Select(which int, who uint64, f func([]schedule.Thread) (uint64, linux.Errno)) (uint64, linux.Errno) {
	return locked(t.Task, func() (uint64, linux.Errno) {
		all, errno := t.selected(which, who)
		if errno != 0 {
			return 0, errno
		}
		threads := make([]schedule.Thread, len(all))
		for i, of := range all {
			threads[i] = scheduleTask{of}
		}
		return f(threads)
	})
}

// withTask calls f with the task that has an ID, or the caller for 0, with System.mu held. Errors: EINVAL, ESRCH.
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

// selected returns the tasks that getpriority(2) and setpriority(2) mean. The caller holds System.mu. Errors: EINVAL, ESRCH.
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
