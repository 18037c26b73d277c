package schedule

import (
	"loam/abi/linux"
	"loam/posix/credential"
)

// kernelID is the ID of process 1, which is the kernel or a program in ring 0 and has no threads here.
const kernelID = 1

// kernel stands for process 1: a thread of root with the traits of a new process. Changes have no effect.
type kernel struct{ traits Traits }

func (k *kernel) Traits() *Traits         { return &k.traits }
func (*kernel) Identity() *credential.Set { return &credential.Set{} }
func (*kernel) Limit(int) uint64          { return 0 }
func (*kernel) Bind()                     {}

// with is Caller.With, also for process 1.
func with(t Caller, id uint64, f func(Thread) (uint64, linux.Errno)) (uint64, linux.Errno) {
	if number(id) == kernelID {
		return f(&kernel{})
	}
	return t.With(id, f)
}

// selected is Caller.Select, also for process 1.
func selected(t Caller, which int, who uint64, f func([]Thread) (uint64, linux.Errno)) (uint64, linux.Errno) {
	if which == linux.PRIO_PROCESS && number(who) == kernelID {
		return f([]Thread{&kernel{}})
	}
	return t.Select(which, who, f)
}
