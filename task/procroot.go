package task

import (
	"runtime"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/credential"
	"loam/task/family"
	"loam/task/limit"
	"loam/task/procfs"
	"loam/task/schedule"
)

// shownRoot is process 1 as a procfs.Process: the program that started the system. In /proc it has no memory,
// descriptors or arguments, as the threads of Linux's kernel.
type shownRoot struct {
	procfs.Bare
	s      *System
	mounts *fs.Tree
}

// PID implements procfs.Process.
func (w shownRoot) PID() int { return int(w.s.root.PID) }

// Threads implements procfs.Process.
func (w shownRoot) Threads() []int { return []int{w.PID()} }

// Stat implements procfs.Process.
func (w shownRoot) Stat(tid int) (procfs.Stat, bool) {
	if tid != w.PID() {
		return procfs.Stat{}, false
	}
	return procfs.Stat{
		PID: w.PID(), TID: w.PID(), Group: w.PID(), Session: w.PID(), TerminalGroup: -1, Name: "loam", State: 'S',
		ExitSignal: linux.SIGCHLD, Threads: 1, Affinity: schedule.AllCPUs(w.s.config.CPUs), Credentials: credential.New(0, 0),
		Limits: limit.Default(w.s.config.Machine.Pages()), LoginUser: noLogin, TableSize: runtime.NumCPU(),
	}, true
}

// Tree implements procfs.Process.
func (w shownRoot) Tree() *fs.Tree { return w.mounts }

// Owner implements procfs.Process.
func (w shownRoot) Owner() (uid, gid uint32, dumpable bool) { return 0, 0, true }

// MayInspect implements procfs.Process.
func (w shownRoot) MayInspect(c fs.Caller) bool {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	t := w.s.tasks[family.PID(c.TID)]
	return t != nil && t.creds().Has(linux.CAP_SYS_PTRACE)
}

// Set implements procfs.Process.
func (w shownRoot) Set(fs.Caller, int, procfs.Attribute, string) error { return linux.EPERM }
