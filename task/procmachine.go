package task

import (
	"context"
	"fmt"
	"maps"
	"time"

	"loam/fs"
	"loam/mem"
	"loam/posix"
	"loam/posix/mqueue"
	"loam/task/account"
	"loam/task/limit"
	"loam/task/procfs"
	"loam/task/setting"
)

// This file makes the files of /proc that describe the machine, from the state of its processes and its memory.

// Observe updates the load average every few seconds until the context ends.
func (s *System) Observe(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(account.LoadInterval):
			s.mu.Lock()
			n, _ := s.running()
			s.load.Add(n)
			s.mu.Unlock()
		}
	}
}

// Processes returns the entries of all processes for /proc, without process 1 if it is a Host. mounts returns the
// texts of mounts and mountinfo.
func (s *System) Processes(mounts func(made []fs.Mounted) (mounts, info string)) *procfs.Processes {
	c := procfs.Config{Source: shown{s}, Mounts: mounts}
	if s.hosted() {
		c.Own = int(s.root.PID)
	}
	return procfs.New(c)
}

// Figures returns figures of the machine below a System.
type Figures struct {
	// Memory returns total and free memory in bytes; free pages are not in use.
	Memory func() (total, free uint64)
	// Busy returns the CPU time used on all CPUs.
	Busy func() time.Duration
	// UserPages returns the physical pages in use for ring 3. nil: unknown.
	UserPages func() procfs.UserPages
}

// MachineFiles returns the files of /proc that show processes, memory and limits, by path.
func (s *System) MachineFiles(f Figures) map[string]func() string {
	s.physical = f.Memory
	files := map[string]func() string{
		"stat":    func() string { return s.figures(f).Stat() },
		"uptime":  func() string { return s.figures(f).Uptime() },
		"loadavg": func() string { return s.figures(f).Loadavg() },
		"meminfo": func() string { return s.figures(f).Meminfo() },
		"vmstat":  func() string { return s.figures(f).VMStat() },

		"sys/kernel/threads-max": func() string { return fmt.Sprintln(limit.Default(s.config.Machine.Pages())[6].Cur * 2) },
	}
	maps.Copy(files, procfs.Settings())
	maps.Copy(files, s.ipc.Files())
	maps.Copy(files, mqueue.Files())
	return files
}

// Settings returns the files of /proc/sys that root may write, by path below /proc, for the system of p.
func (s *System) Settings(p *posix.Process) map[string]setting.Setting {
	all := setting.All(&s.account, p)
	maps.Copy(all, setting.SysV(s.ipc.Limits))
	maps.Copy(all, setting.Processes(s.tree, &s.cores))
	return all
}

// figures returns the figures of the machine as they are now.
func (s *System) figures(f Figures) *procfs.Figures {
	r := &procfs.Figures{CPUs: s.config.CPUs, Up: s.monotonic(), Busy: f.Busy(), Committed: uint64(max(s.account.Committed(), 0)), CommitLimit: uint64(s.account.Limit()), Killed: s.killed.Load(), Blocks: s.Blocks.Use()}
	r.Total, r.Free = f.Memory()
	r.Private, r.Files, r.Dirty = s.memoryUse()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Used.Add(&s.ended)
	for _, p := range s.processes {
		r.Used.Add(p.used())
	}
	if r.Heap, r.HeapLive = account.KernelHeap(); f.UserPages != nil {
		r.UserPages = f.UserPages()
	}
	r.Running, r.Tasks = s.running()
	r.Forks, r.Load, r.LastPID = s.forks, s.load, int(s.tree.Last())
	return r
}

// memoryUse returns the pages of private memory of all processes, of files, and of changed files.
func (s *System) memoryUse() (private, files, dirty uint64) {
	s.mu.Lock()
	seen := map[*addressSpace]bool{}
	for _, p := range s.processes {
		if a := p.space.Load(); a != nil && !seen[a] && a.users.Load() > 0 {
			seen[a] = true
			private += a.Usage().Private >> mem.PageShift
		}
	}
	s.mu.Unlock()
	pages, changed := s.cache.Pages()
	return private, uint64(pages), uint64(changed)
}
