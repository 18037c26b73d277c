package procfs

import (
	"fmt"
	"strings"
	"time"

	"loam/mem"
	"loam/task/account"
)

// Figures holds measurements of a machine, for files of /proc such as stat and meminfo.
type Figures struct {
	CPUs    int
	Up      time.Duration // time since the start of the machine
	Busy    time.Duration // CPU time used on all CPUs together
	Used    account.Usage // resources used by all processes since the start
	Forks   uint64        // number of processes and threads created since the start
	LastPID int
	Load    account.Load

	Running, Tasks int    // number of threads that run or are runnable, and of all threads
	Total, Free    uint64 // size of the memory and free memory in bytes
	// Numbers of pages: private memory, file contents, changed file contents, and memory that is promised to processes.
	Private, Files, Dirty, Committed uint64
	CommitLimit                      uint64 // pages that may be promised with vm.overcommit_memory 2
	Killed                           int64  // number of processes killed because memory ran out
	Blocks                           mem.BlockUse
	UserPages                        UserPages
	// Bytes in the heap of the kernel: all objects, and the objects that were reachable at the last garbage collection.
	Heap, HeapLive uint64
}

// UserPages holds the numbers of physical pages used for Linux programs. The pages that only All counts are the memory of
// processes, where a shared page counts once, and file contents.
type UserPages struct {
	All     int64
	Tables  int64 // page tables
	Threads int64 // registers of threads
}

// times returns the CPU times of all CPUs together: in ring 3, in the kernel, and idle.
func (f *Figures) times() (user, system, idle time.Duration) {
	whole := f.Up * time.Duration(f.CPUs)
	user = time.Duration(f.Used.User.Load())
	system = max(f.Busy-user, time.Duration(f.Used.System.Load()))
	return user, system, max(whole-user-system, 0)
}

// Stat returns the content of /proc/stat.
func (f *Figures) Stat() string {
	user, system, idle := f.times()
	var b strings.Builder
	fmt.Fprintf(&b, "cpu  %d 0 %d %d 0 0 0 0 0 0\n", user/tick, system/tick, idle/tick)
	n := time.Duration(f.CPUs)
	for i := range n {
		fmt.Fprintf(&b, "cpu%d %d 0 %d %d 0 0 0 0 0 0\n", i, user/n/tick, system/n/tick, idle/n/tick)
	}
	fmt.Fprintf(&b, "intr 0\nctxt %d\nbtime %d\nprocesses %d\nprocs_running %d\nprocs_blocked 0\nsoftirq%s\n",
		f.Used.Voluntary.Load()+f.Used.Involuntary.Load(), time.Now().Add(-f.Up).Unix(), f.Forks+1, f.Running, strings.Repeat(" 0", 11))
	return b.String()
}

// Uptime returns the content of /proc/uptime.
func (f *Figures) Uptime() string {
	_, _, idle := f.times()
	return fmt.Sprintf("%.2f %.2f\n", f.Up.Seconds(), idle.Seconds())
}

// Loadavg returns the content of /proc/loadavg.
func (f *Figures) Loadavg() string {
	return fmt.Sprintf("%.2f %.2f %.2f %d/%d %d\n", f.Load[0], f.Load[1], f.Load[2], f.Running, f.Tasks, f.LastPID)
}

// Meminfo returns the content of /proc/meminfo.
func (f *Figures) Meminfo() string {
	const kB = mem.PageSize >> 10
	total, free := f.Total, f.Free
	private, files, dirty := f.Private, f.Files, f.Dirty
	slab, live := f.slab()
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
	row("KReclaimable", slab-live)
	row("Slab", slab)
	row("SReclaimable", slab-live) // at most: objects that were allocated since the last collection count, too
	row("SUnreclaim", live)
	row("PageTables", uint64(f.UserPages.Tables)*kB)
	row("CommitLimit", f.CommitLimit*kB)
	row("Committed_AS", f.Committed*kB)
	row("VmallocTotal", 0)
	row("AnonHugePages", f.Blocks.Now*(mem.BlockSize>>10))
	row("ShmemHugePages", 0)
	row("FileHugePages", 0)
	row("HugePages_Total", 0)
	return strings.ReplaceAll(b.String(), "HugePages_Total:       0 kB", "HugePages_Total:       0") +
		"HugePages_Free:        0\nHugePages_Rsvd:        0\nHugePages_Surp:        0\nHugepagesize:       2048 kB\n"
}

// slab returns the KiB of the objects in the kernel's heap, and of the objects that were reachable at the last garbage collection.
// Objects that have not been written to have no memory yet: so the result is at most the memory that processes and files do not use.
func (f *Figures) slab() (all, live uint64) {
	const kB = mem.PageSize >> 10
	used, others := (f.Total-f.Free)>>10, (f.Private+f.Files+uint64(f.UserPages.Tables))*kB
	all = min(f.Heap>>10, used-min(used, others))
	return all, min(f.HeapLive>>10, all)
}

// VMStat returns the content of /proc/vmstat.
func (f *Figures) VMStat() string {
	return fmt.Sprintf("nr_free_pages %d\nnr_anon_pages %d\nnr_file_pages %d\nnr_dirty %d\nnr_writeback 0\npgpgin 0\npgpgout 0\n"+
		"pswpin 0\npswpout 0\npgfault %d\npgmajfault %d\noom_kill %d\nnr_user_pages %d\nnr_page_table_pages %d\nnr_thread_pages %d\n"+
		"nr_anon_transparent_hugepages %d\nthp_fault_alloc %d\nthp_fault_fallback %d\nthp_collapse_alloc %d\nthp_split_page %d\n",
		f.Free>>mem.PageShift, f.Private, f.Files, f.Dirty, f.Used.Minor.Load(), f.Used.Major.Load(), f.Killed,
		f.UserPages.All, f.UserPages.Tables, f.UserPages.Threads,
		f.Blocks.Now, f.Blocks.Faults, f.Blocks.Fallbacks, f.Blocks.Collapsed, f.Blocks.Split)
}
