package task

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"loam/mem"
	"loam/task/procfs"
)

// The files of /proc about the machine, by the figures of processes and memory.

// load is the load average over 1, 5 and 15 minutes (proc(5), /proc/loadavg).
type load [3]float64

// loadInterval is the time between two samples of the number of running tasks.
const loadInterval = 5 * time.Second

// add adds a sample: the average moves towards it.
func (l *load) add(running int) {
	for i, over := range [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute} {
		weight := math.Exp(-float64(loadInterval) / float64(over))
		l[i] = l[i]*weight + float64(running)*(1-weight)
	}
}

// Observe keeps the load average until the context ends.
func (s *System) Observe(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(loadInterval):
			s.mu.Lock()
			n, _ := s.running()
			s.load.add(n)
			s.mu.Unlock()
		}
	}
}

// Processes returns the entries of all processes for /proc, without process 1 if it is a Host. mounts and info are the
// texts of mounts and mountinfo.
func (s *System) Processes(mounts, info string) *procfs.Processes {
	c := procfs.Config{Source: shown{s}, Mounts: mounts, MountInfo: info}
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
}

// MachineFiles returns the files of /proc that show processes and memory, by path.
func (s *System) MachineFiles(f Figures) map[string]func() string {
	files := map[string]func() string{
		"stat":    func() string { return s.procStat(f) },
		"uptime":  func() string { return s.procUptime(f) },
		"loadavg": s.procLoadavg,
		"meminfo": func() string { return s.procMeminfo(f) },
		"vmstat":  func() string { return s.procVMStat(f) },

		"sys/kernel/pid_max":     func() string { return "4194304\n" },
		"sys/kernel/threads-max": func() string { return fmt.Sprintln(defaultLimits(s.config.Machine.Pages())[6].Cur * 2) },
		"sys/fs/nr_open":         func() string { return fmt.Sprintln(maxOpenFiles) },
	}
	maps.Copy(files, s.ipc.files())
	return files
}

// totals returns the use of resources by all processes since the start, and the numbers of tasks.
func (s *System) totals() (u *usage, forks uint64, running, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u = &usage{}
	u.add(&s.ended)
	for _, p := range s.processes {
		u.add(p.used())
	}
	running, all = s.running()
	return u, s.forks, running, all
}

// cpuTimes returns the times of all CPUs: in ring 3, in the kernel, and idle.
func (s *System) cpuTimes(f Figures, u *usage) (user, system, idle time.Duration) {
	whole := s.monotonic() * time.Duration(s.config.CPUs)
	user = time.Duration(u.user.Load())
	system = max(f.Busy()-user, time.Duration(u.system.Load()))
	return user, system, max(whole-user-system, 0)
}

func (s *System) procStat(f Figures) string {
	u, forks, running, _ := s.totals()
	user, system, idle := s.cpuTimes(f, u)
	var b strings.Builder
	fmt.Fprintf(&b, "cpu  %d 0 %d %d 0 0 0 0 0 0\n", user/tick, system/tick, idle/tick)
	n := time.Duration(s.config.CPUs)
	for i := range n {
		fmt.Fprintf(&b, "cpu%d %d 0 %d %d 0 0 0 0 0 0\n", i, user/n/tick, system/n/tick, idle/n/tick)
	}
	fmt.Fprintf(&b, "intr 0\nctxt %d\nbtime %d\nprocesses %d\nprocs_running %d\nprocs_blocked 0\nsoftirq%s\n",
		u.voluntary.Load()+u.involuntary.Load(), time.Now().Add(-s.monotonic()).Unix(), forks+1, running, strings.Repeat(" 0", 11))
	return b.String()
}

func (s *System) procUptime(f Figures) string {
	u, _, _, _ := s.totals()
	_, _, idle := s.cpuTimes(f, u)
	return fmt.Sprintf("%.2f %.2f\n", s.monotonic().Seconds(), idle.Seconds())
}

func (s *System) procLoadavg() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	running, all := s.running()
	return fmt.Sprintf("%.2f %.2f %.2f %d/%d %d\n", s.load[0], s.load[1], s.load[2], running, all, s.tree.Last())
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
	pages, changed := s.files.cache.Pages()
	return private, uint64(pages), uint64(changed)
}

func (s *System) procMeminfo(f Figures) string {
	const kB = mem.PageSize >> 10
	total, free := f.Memory()
	private, files, dirty := s.memoryUse()
	var b strings.Builder
	row := func(name string, kilobytes uint64) { fmt.Fprintf(&b, "%-16s%8d kB\n", name+":", kilobytes) }
	row("MemTotal", total>>10)
	row("MemFree", free>>10)
	row("MemAvailable", min(free>>10+(files-dirty)*kB, total>>10))
	row("Buffers", 0)
	row("Cached", files*kB)
	row("SwapCached", 0)
	row("Active", private*kB)
	row("Inactive", files*kB)
	row("Active(anon)", private*kB)
	row("Inactive(anon)", 0)
	row("Active(file)", 0)
	row("Inactive(file)", files*kB)
	row("Unevictable", 0)
	row("Mlocked", 0)
	row("SwapTotal", 0)
	row("SwapFree", 0)
	row("Dirty", dirty*kB)
	row("Writeback", 0)
	row("AnonPages", private*kB)
	row("Mapped", 0)
	row("Shmem", 0)
	row("KReclaimable", 0)
	row("Slab", 0)
	row("SReclaimable", 0)
	row("SUnreclaim", 0)
	row("PageTables", 0)
	row("CommitLimit", total>>10)
	row("Committed_AS", uint64(max(s.account.Committed(), 0))*kB)
	row("VmallocTotal", 0)
	row("HugePages_Total", 0)
	return strings.ReplaceAll(b.String(), "HugePages_Total:       0 kB", "HugePages_Total:       0") +
		"HugePages_Free:        0\nHugePages_Rsvd:        0\nHugePages_Surp:        0\nHugepagesize:       2048 kB\n"
}

func (s *System) procVMStat(f Figures) string {
	_, free := f.Memory()
	private, files, dirty := s.memoryUse()
	u, _, _, _ := s.totals()
	return fmt.Sprintf("nr_free_pages %d\nnr_anon_pages %d\nnr_file_pages %d\nnr_dirty %d\nnr_writeback 0\npgpgin 0\npgpgout 0\n"+
		"pswpin 0\npswpout 0\npgfault %d\npgmajfault %d\noom_kill %d\n",
		free>>mem.PageShift, private, files, dirty, u.minor.Load(), u.major.Load(), s.killed.Load())
}
