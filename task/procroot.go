package task

import (
	"runtime"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/credential"
	"loam/task/family"
	"loam/task/procfs"
)

// shownRoot is process 1 as a procfs.Process: the program that started the system. Like a thread of Linux's kernel it has
// no memory, descriptors or arguments that it would show.
type shownRoot struct{ s *System }

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
		ExitSignal: linux.SIGCHLD, Threads: 1, Affinity: w.s.allCPUs(), Credentials: credential.New(0, 0),
		Limits: defaultLimits(w.s.config.Machine.Pages()), LoginUser: noLogin, TableSize: runtime.NumCPU(),
	}, true
}

// Owner implements procfs.Process.
func (w shownRoot) Owner() (uid, gid uint32, dumpable bool) { return 0, 0, true }

// MayInspect implements procfs.Process.
func (w shownRoot) MayInspect(c fs.Caller) bool {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	t := w.s.tasks[family.PID(c.TID)]
	return t != nil && t.creds().Has(linux.CAP_SYS_PTRACE)
}

// Arguments implements procfs.Process, as the other methods below: there is nothing to see.
func (w shownRoot) Arguments() []byte { return nil }

// Environment implements procfs.Process.
func (w shownRoot) Environment() []byte { return nil }

// Auxv implements procfs.Process.
func (w shownRoot) Auxv() []byte { return nil }

// Maps implements procfs.Process.
func (w shownRoot) Maps() []byte { return nil }

// Smaps implements procfs.Process.
func (w shownRoot) Smaps() []byte { return nil }

// ReadMemory implements procfs.Process.
func (w shownRoot) ReadMemory([]byte, uint64) int { return 0 }

// WriteMemory implements procfs.Process.
func (w shownRoot) WriteMemory([]byte, uint64) int { return 0 }

// Present implements procfs.Process.
func (w shownRoot) Present(uint64) bool { return false }

// Descriptors implements procfs.Process.
func (w shownRoot) Descriptors() []int { return nil }

// Descriptor implements procfs.Process.
func (w shownRoot) Descriptor(int) (procfs.Descriptor, bool) { return procfs.Descriptor{}, false }

// Link implements procfs.Process.
func (w shownRoot) Link(procfs.Link) (place fs.Place, path string, ok bool) { return place, "", false }

// Counts implements procfs.Process.
func (w shownRoot) Counts() procfs.Counts { return procfs.Counts{} }

// Set implements procfs.Process.
func (w shownRoot) Set(fs.Caller, int, procfs.Attribute, string) error { return linux.EPERM }
