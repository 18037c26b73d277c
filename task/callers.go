package task

import (
	"time"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/task/family"
	"loam/task/futexcall"
	"loam/task/machine"
	"loam/task/rseq"
)

// callTask is a task as a caller of the packages that implement families of calls: futexcall, ipc, privilege, rseq,
// schedule, seccomp and wait. A method that only one of these packages needs is in the file of package task for that family.
type callTask struct{ *Task }

// ID returns the ID of the thread, and PID the ID of its process.
func (t callTask) ID() int32  { return int32(t.id) }
func (t callTask) PID() int32 { return int32(t.process.node.PID) }

// Identity returns the credentials of the thread.
func (t callTask) Identity() *credential.Set { return t.creds() }

// Map and Memory return the memory of the process that the thread belongs to.
func (t callTask) Map() *mem.Map       { return t.memory().Map }
func (t callTask) Memory() call.Memory { return t.caller.Memory }

// Await waits as Task.await does.
func (t callTask) Await(ready <-chan struct{}, most time.Duration) linux.Errno {
	return t.await(ready, most)
}

// Duration reads a struct timespec.
func (t callTask) Duration(addr uint64) (time.Duration, linux.Errno) { return t.duration(addr) }

// Clock returns the time of a clock in nanoseconds.
func (t callTask) Clock(id int) (int64, linux.Errno) { return t.clock(id) }

// Machine returns the registers of the thread.
func (t callTask) Machine() machine.Thread { return t.thread }

// Sequence implements rseq.Caller.
func (t callTask) Sequence() *rseq.Registration { return &t.rseq }

// Futexes implements futexcall.Caller.
func (t callTask) Futexes() *futexcall.Thread { return &t.futexes }

// RobustListOf implements futexcall.Caller.
func (t callTask) RobustListOf(id uint64) (uint64, linux.Errno) {
	head, errno := t.withTask(id, func(of *Task) (uint64, linux.Errno) {
		if of != t.Task && !t.mayInspect(of.process, false) {
			return 0, linux.EPERM
		}
		return of.futexes.RobustList(), 0
	})
	if errno == linux.EINVAL { // a negative ID
		errno = linux.ESRCH
	}
	return head, errno
}

// Priority implements futexcall.Caller.
func (t callTask) Priority() int {
	s := t.process.system
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.traits.Priority
}

// Load implements futexcall.Caller.
func (t callTask) Load(addr uint64) (uint32, linux.Errno) { return memory{t.Task}.load(addr) }

// Swap implements futexcall.Caller.
func (t callTask) Swap(addr uint64, old, value uint32) (uint32, linux.Errno) {
	return memory{t.Task}.swap(addr, old, value)
}

// futexThread returns a thread for package futexcall, or nil.
func (s *System) futexThread(id uint32) futexcall.Caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tasks[family.PID(id)]; t != nil {
		return callTask{t}
	}
	return nil
}
