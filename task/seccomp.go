package task

import (
	"iter"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/task/seccomp"
	"loam/task/signal"
	"loam/task/trace"
)

// This file connects tasks to package seccomp, which has the filters that threads set for their own system calls. A
// thread without filters has no extra cost (see package attention). System.mu guards the chains of filters.

// inherit gives a new thread the seccomp filters of the thread that creates it, and applies the CPU set that the new thread has
// inherited. The caller holds System.mu.
func (t *Task) inherit(of *Task) {
	callTask{t}.SetFilters(of.filters.Load())
	callTask{t}.Bind()
}

// Filters implements seccomp.Thread.
func (t callTask) Filters() *seccomp.Filter { return t.filters.Load() }

// SetFilters implements seccomp.Thread.
func (t callTask) SetFilters(f *seccomp.Filter) {
	t.filters.Store(f)
	if f != nil {
		t.alerted.Filter()
	}
}

// ForbidPrivileges implements seccomp.Thread.
func (t callTask) ForbidPrivileges() {
	c := *t.creds()
	c.NoNewPrivs = true
	t.caller.Process.ChangeIdentity(c)
}

// Locked implements seccomp.Caller.
func (t callTask) Locked(f func() (uint64, linux.Errno)) (uint64, linux.Errno) {
	return locked(t.Task, f)
}

// Others implements seccomp.Caller.
func (t callTask) Others() iter.Seq[seccomp.Thread] {
	return func(yield func(seccomp.Thread) bool) {
		for _, o := range t.process.tasks {
			if o != t.Task && !yield(callTask{o}) {
				return
			}
		}
	}
}

// Registers implements seccomp.Caller.
func (t callTask) Registers() *amd64.Frame { return t.registers }

// Force implements seccomp.Caller.
func (t callTask) Force(i signal.Info) { t.force(i) }

// Report implements seccomp.Caller.
func (t callTask) Report(number uint64, data uint32) (uint64, bool) {
	return trace.Filtered(traceTask(t), number, data)
}

// Kill implements seccomp.Caller.
func (t callTask) Kill(n int32, whole bool) {
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole || len(t.process.tasks) == 1 {
		t.process.end(n)
		return
	}
	t.leaving, t.exited, t.exitCode = true, true, n
}
