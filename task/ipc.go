package task

import "loam/mem"

// System V's IPC: see package ipc.

// leaveSegments records that the process stops using a range of its memory.
func (t *Task) leaveSegments(start, end uint64) {
	t.process.system.ipc.LeaveSegments(callTask{t}, start, end)
}

// leaveMemory records that the process stops using all of its memory, unless another process shares the memory.
func (t *Task) leaveMemory() {
	if t.memory().users.Load() == 1 {
		t.leaveSegments(0, mem.End)
	}
}
