// Package children lets a Go program in ring 0 start other programs: os/exec, os.StartProcess and syscall.ForkExec create
// processes in ring 3 (package task), which are children of the program. The loam command links it into a program that
// contains syscall.forkExec, and into no other.
//
// spawn.go translates the attributes of a new process; calls.go has the system calls that reach processes. The system of
// processes is created with the first child.
package children

import (
	"context"
	"sync"
	"sync/atomic"

	"loam/task"
	"loam/task/signal"
	"loam/unikernel/rt"
	"loam/unikernel/rt/ring3"
)

// The init function runs before all packages of the program are initialised: see package rt.
func init() {
	spawnProgram = start
	serveCalls()
}

// host is the program as process 1. It is set once, when the first child is created; nil before.
var host atomic.Pointer[task.Host]

// open creates the task.System, which holds the processes in ring 3, once.
var open = sync.OnceValue(func() error {
	s, err := ring3.NewSystem()
	if err != nil {
		return err
	}
	h := s.NewHost(task.HostConfig{
		Process: rt.Process(), Executable: rt.Executable(),
		Signal:  func(n int) { rt.SendSignal(n) },
		Ignored: func() signal.Set { return signal.Set(rt.IgnoredSignals()) },
	})
	if err := ring3.ShowProcesses(s, true); err != nil {
		return err
	}
	host.Store(h)
	go s.WriteBack(context.Background())
	go s.Observe(context.Background())
	return nil
})
