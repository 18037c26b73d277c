package task

import (
	"time"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/credential"
)

// System V's IPC: see package ipc.

// ipcTask is a task as a caller of package ipc.
type ipcTask struct{ *Task }

// PID implements ipc.Caller.
func (t ipcTask) PID() int32 { return int32(t.process.node.PID) }

// Identity implements ipc.Caller.
func (t ipcTask) Identity() *credential.Set { return t.creds() }

// Map implements ipc.Caller.
func (t ipcTask) Map() *mem.Map { return t.memory().Map }

// Memory implements ipc.Caller.
func (t ipcTask) Memory() call.Memory { return t.caller.Memory }

// Await implements ipc.Caller.
func (t ipcTask) Await(ready <-chan struct{}, most time.Duration) linux.Errno {
	return t.await(ready, most)
}

// Duration implements ipc.Caller.
func (t ipcTask) Duration(addr uint64) (time.Duration, linux.Errno) { return t.duration(addr) }

// leaveSegments records that the process stops using a range of its memory.
func (t *Task) leaveSegments(start, end uint64) {
	t.process.system.ipc.LeaveSegments(ipcTask{t}, start, end)
}

// leaveMemory is leaveSegments for all memory, unless another process shares it.
func (t *Task) leaveMemory() {
	if t.memory().users.Load() == 1 {
		t.leaveSegments(0, mem.End)
	}
}
