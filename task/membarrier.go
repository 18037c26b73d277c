package task

import (
	"loam/abi/linux"
	"loam/posix/call"
)

// barriers are the commands of membarrier(2) that are supported. Those for restartable sequences are missing.
const barriers = linux.MEMBARRIER_CMD_GLOBAL | linux.MEMBARRIER_CMD_GLOBAL_EXPEDITED | linux.MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED |
	linux.MEMBARRIER_CMD_PRIVATE_EXPEDITED | linux.MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED |
	linux.MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE | linux.MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE |
	getRegistrations

const getRegistrations = 1 << 9 // MEMBARRIER_CMD_GET_REGISTRATIONS (Linux 6.3)

// membarrier implements membarrier(2). Each barrier is expedited: it interrupts the processors that run the threads.
// Errors: EINVAL; EPERM if the process is not registered for the command.
func membarrier(t *Task, a call.Args) (uint64, linux.Errno) {
	own, command := t.memory(), uint32(a.A1)
	if uint32(a.A2) != 0 {
		return 0, linux.EINVAL
	}
	switch command {
	case linux.MEMBARRIER_CMD_QUERY:
		return barriers, 0
	case getRegistrations:
		return uint64(own.barriers.Load() * 2), 0 // the values of the commands that registered
	case linux.MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, linux.MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED:
		own.barriers.Or(command / 2) // the value of the command for which it registers
	case linux.MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE:
		own.barriers.Or(command/2 | linux.MEMBARRIER_CMD_PRIVATE_EXPEDITED)
	case linux.MEMBARRIER_CMD_PRIVATE_EXPEDITED, linux.MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE:
		if own.barriers.Load()&command == 0 {
			return 0, linux.EPERM
		}
		own.Barrier()
	case linux.MEMBARRIER_CMD_GLOBAL, linux.MEMBARRIER_CMD_GLOBAL_EXPEDITED:
		for _, space := range t.process.system.spaces() {
			if command == linux.MEMBARRIER_CMD_GLOBAL || space.barriers.Load()&command != 0 {
				space.Barrier()
			}
			space.leave()
		}
	default:
		return 0, linux.EINVAL
	}
	return 0, 0
}

// spaces returns the memory of all processes. The caller leaves each.
func (s *System) spaces() (list []*addressSpace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.processes {
		if space := p.borrow(); space != nil {
			list = append(list, space)
		}
	}
	return list
}
