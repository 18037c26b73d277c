package ring3

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/exec"
	"loam/fs/pseudo"
	"loam/kernel"
	"loam/kernel/user"
	"loam/mem"
	"loam/task"
	"loam/task/procfs"
	"loam/task/rseq"
	"loam/task/shortage"
	"loam/unikernel/rt"
)

// NewSystem returns a system of processes on the processors and the memory of the machine. Files in memory move to its
// page cache when they are opened.
func NewSystem() (*task.System, error) {
	m, ok := newMemory()
	if !ok {
		return nil, errors.New("there is no memory left: give the machine more (-m)")
	}
	s := task.New(task.Config{
		Machine: machine{m}, Started: time.Now(), Monotonic: monotonic, ClockPage: m.clock(), CPUs: runtime.NumCPU(),
		Heap:      shortage.Memory{Short: kernel.Short(), Free: freePages},
		Auxiliary: exec.Machine{MinSignalStack: linux.MINSIGSTKSZ, RseqSize: rseq.Features, RseqAlign: rseq.Align},
	})
	rt.UsePageCache(s.NewContent)
	return s, nil
}

// ShowProcesses makes /proc and /sys show the processes of a system. hosted means that the program in ring 0 is one of them.
func ShowProcesses(s *task.System, hosted bool) error {
	err := rt.MountPseudo(func(p *pseudo.Process) {
		p.Writable, p.Listed = true, hosted
		p.Processes = s.Processes(p.MountTables)
		p.Settings = map[string]pseudo.Setting{pseudo.HugePagePolicy: {
			Text: func() string { return procfs.PolicyText(s.Blocks.Policy()) },
			Set: func(text string, _ int64) (int, error) {
				if err := procfs.SetPolicy(&s.Blocks, text); err != nil {
					return 0, err
				}
				return len(text), nil
			},
		}}
		p.Sysctls = map[string]pseudo.Setting{}
		for path, setting := range s.Settings(rt.Process()) {
			p.Sysctls[path] = pseudo.Setting(setting)
		}
		p.Replaced = s.MachineFiles(task.Figures{Memory: p.Memory, Busy: p.Used, UserPages: usedPages})
		p.Replaced["locks"] = rt.Process().Locks().Text
		p.Replaced["cpuinfo"] = func() string {
			return procfs.CPUInfo(runtime.NumCPU(), counterFrequency(), kernel.Isolated(), amd64.CPUID)
		}
	})
	if err != nil {
		return fmt.Errorf("/proc and /sys: %w", err)
	}
	return nil
}

// usedPages returns the physical pages in use for ring 3.
func usedPages() procfs.UserPages {
	u := user.Shared().Used()
	return procfs.UserPages{All: u.All, Tables: u.Tables, Threads: u.Threads}
}

// freePages returns the number of free pages, and of those that ring 3 does not get.
func freePages() (free, reserve int64) {
	user.Shared().Drain()
	var s syscall.Sysinfo_t
	if syscall.Sysinfo(&s) != nil {
		return 0, 0
	}
	unit := int64(s.Unit)
	return int64(s.Freeram) * unit / mem.PageSize, kernel.Reserve(int64(s.Totalram) * unit / mem.PageSize)
}
