package pseudo

import (
	"fmt"
	"strconv"
	"time"
)

// cgroupFolder is where Linux mounts the control groups.
const cgroupFolder = "/sys/fs/cgroup"

// Cgroup returns a file system for /sys/fs/cgroup: the control group of the process (cgroups(7), and
// Linux's Documentation/admin-guide/cgroup-v2.rst). It looks as in a container, where the process's
// group is the root of the namespace. Nothing can be changed. Pressure (PSI) is not measured and
// reported as 0.
func Cgroup(p Process) *FileSystem {
	f := New(CgroupMagic)
	f.Fixed("cgroup.controllers", "cpu io memory pids\n")
	f.Fixed("cgroup.subtree_control", "\n")
	f.Fixed("cgroup.type", "domain\n")
	f.Fixed("cgroup.procs", strconv.Itoa(p.PID)+"\n")
	f.Fixed("cgroup.threads", strconv.Itoa(p.PID)+"\n")
	f.Fixed("cgroup.events", "populated 1\nfrozen 0\n")
	f.Fixed("cgroup.freeze", "0\n")
	f.Fixed("cgroup.stat", "nr_descendants 0\nnr_dying_descendants 0\n")
	f.Fixed("cgroup.max.depth", unlimited)
	f.Fixed("cgroup.max.descendants", unlimited)
	p.cpuGroup(f)
	p.memoryGroup(f)
	f.Fixed("io.stat", "")
	f.Fixed("io.max", "")
	f.Fixed("pids.current", "1\n")
	f.Fixed("pids.max", unlimited)
	for _, controller := range [...]string{"cpu", "io", "memory"} {
		f.Fixed(controller+".pressure", noPressure)
	}
	return f
}

const (
	unlimited  = "max\n"
	noPressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
)

// cpuGroup adds the files of the cpu controller. The number of CPUs is the only limit.
func (p *Process) cpuGroup(f *FileSystem) {
	f.Fixed("cpu.max", "max 100000\n") // quota and period, in microseconds
	f.Fixed("cpu.max.burst", "0\n")
	f.Fixed("cpu.weight", "100\n")
	f.Fixed("cpu.weight.nice", "0\n")
	f.Fixed("cpu.idle", "0\n")
	f.File("cpu.stat", func() string {
		return fmt.Sprintf("usage_usec %d\nuser_usec %[1]d\nsystem_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\nnr_bursts 0\nburst_usec 0\n",
			p.Used()/time.Microsecond)
	})
}

// memoryGroup adds the files of the memory controller. If the process has the machine to itself, the
// machine's memory is the limit.
func (p *Process) memoryGroup(f *FileSystem) {
	current := residentBytes
	limit := unlimited
	if p.Alone {
		total, _ := p.Memory()
		limit = fmt.Sprintln(total / pageSize * pageSize)
		current = func() uint64 {
			total, free := p.Memory()
			return total - free
		}
	}
	f.Fixed("memory.max", limit)
	f.Fixed("memory.high", unlimited)
	f.Fixed("memory.low", "0\n")
	f.Fixed("memory.min", "0\n")
	f.File("memory.current", func() string { return fmt.Sprintln(current()) })
	f.Fixed("memory.swap.current", "0\n")
	f.Fixed("memory.swap.max", "0\n")
	f.Fixed("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n")
	f.File("memory.stat", func() string {
		return fmt.Sprintf("anon %d\nfile 0\nkernel_stack 0\nsock 0\nshmem 0\nfile_mapped 0\nfile_dirty 0\nfile_writeback 0\n"+
			"inactive_anon 0\nactive_anon %[1]d\ninactive_file 0\nactive_file 0\nunevictable 0\nslab 0\npgfault 0\npgmajfault 0\n", current())
	})
}
