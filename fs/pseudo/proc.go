package pseudo

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"loam/fs"
)

// Process describes the program and the machine for /proc. Its functions are called when a file is
// read, at any time and on any goroutine.
type Process struct {
	PID, UID, GID int
	Executable    string // path of the program's file
	Arguments     []string
	Environment   []string // at the start
	Mounts        []Mount  // in addition to /, /proc, /sys and /sys/fs/cgroup
	Hostname      func() string
	Domain        func() string // NIS domain (setdomainname(2))
	Release       string        // release of the kernel: "6.1.0-loam"
	Version       string        // version of the kernel, as in uname(2)
	Started       time.Time
	// Memory returns the machine's total and free memory in bytes.
	Memory func() (total, free uint64)
	// Alone means that the machine runs only this process, so the machine's memory is its memory limit.
	Alone bool
	// Used returns the CPU time used by the program, summed over all CPUs.
	Used func() time.Duration
	// Maps returns the content of /proc/self/maps; it may be empty.
	Maps func() string
	// Net maps the names of the files in /proc/net to functions that generate them.
	Net map[string]func() string
	// Interfaces maps the files in /sys/class/net to functions that generate them, by interface and by path
	// below the interface's directory.
	Interfaces map[string]map[string]func() string
	// Folder returns the working directory.
	Folder func() string
	// Descriptors returns the open descriptors, and Descriptor the path or name of one.
	Descriptors func() []int
	Descriptor  func(fd int) string
	// ClockSource is the name of the clock source, as Linux calls it; empty: no such files.
	ClockSource string
	// Disks are the disks of the machine.
	Disks []Disk
	// Meltdown is the content of /sys/devices/system/cpu/vulnerabilities/meltdown; empty: no such file.
	Meltdown string
	// Somaxconn is the maximum backlog of a listener.
	Somaxconn int
	// Processes, if not nil, supplies the directories of processes and the links self and thread-self. Otherwise the
	// program is the only process.
	Processes Extension
	// Listed says that Processes does not contain the program itself, which then has a directory of its own.
	Listed bool
	// Writable says that /proc and /sys are mounted for writing.
	Writable bool
	// Settings are files of /sys that root may write, by path, and Sysctls files of /proc. They replace files of this package.
	Settings, Sysctls map[string]Setting
	// Replaced holds files about the machine, by path, that other functions generate instead of this package, or in addition.
	Replaced map[string]func() string
	// Congestions are the names of TCP congestion control algorithms, the default first; empty: no such
	// files.
	Congestions []string
}

// Proc returns a file system for /proc. It has the files that Go programs and common libraries are
// known to read (proc(5)). There is only one process; its directory has the process ID as its name, and
// self is a link to it.
func Proc(p Process) *FileSystem {
	f := New(ProcMagic)
	f.replaced, f.settings = maps.Clone(p.Replaced), p.Sysctls
	f.Link("mounts", func() string { return "self/mounts" })
	if p.Processes != nil {
		f.Extend(p.Processes)
		p.net(f, "")
		if p.Listed {
			p.own(f, strconv.Itoa(p.PID)+"/")
		}
	} else {
		pid := strconv.Itoa(p.PID)
		f.Link("self", func() string { return pid })
		f.Link("thread-self", func() string { return pid })
		f.Link("net", func() string { return "self/net" })
		p.own(f, pid+"/")
	}
	p.machine(f)
	p.settings(f)
	for _, path := range slices.Sorted(maps.Keys(f.replaced)) { // these files replace no file of this package
		f.File(path, f.replaced[path])
	}
	for path, s := range inOrder(p.Sysctls) {
		f.setting(path, s)
	}
	return f
}

// own adds the directory of the process.
func (p *Process) own(f *FileSystem, dir string) {
	name := p.Executable[strings.LastIndexByte(p.Executable, '/')+1:]
	name = name[:min(len(name), 15)] // TASK_COMM_LEN minus the NUL
	f.Link(dir+"exe", func() string { return p.Executable })
	f.Link(dir+"cwd", p.Folder)
	f.Link(dir+"root", func() string { return "/" })
	f.Fixed(dir+"comm", name+"\n")
	f.Fixed(dir+"cmdline", terminated(p.Arguments))
	environ := f.Fixed
	if p.Processes != nil { // processes of other users must not read the environment
		environ = f.private
	}
	environ(dir+"environ", terminated(p.Environment))
	f.File(dir+"maps", p.Maps)
	f.File(dir+"status", func() string { return p.status(name) })
	f.File(dir+"stat", func() string { return p.stat(name) })
	f.File(dir+"statm", func() string {
		pages := residentBytes() / pageSize
		return fmt.Sprintf("%d %d 0 0 0 %d 0\n", pages, pages, pages)
	})
	f.File(dir+"mounts", func() string {
		mounts, _ := p.MountTables(nil)
		return mounts
	})
	f.File(dir+"mountinfo", func() string {
		_, info := p.MountTables(nil)
		return info
	})
	f.Fixed(dir+"cgroup", "0::/\n")
	f.Fixed(dir+"limits", "Limit                     Soft Limit           Hard Limit           Units     \n"+
		"Max open files            1048576              1048576              files     \n")
	f.Fixed(dir+"oom_score_adj", "0\n")
	f.Fixed(dir+"io", "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n")
	p.net(f, dir)
	numbers := func() []string {
		var names []string
		for _, fd := range p.Descriptors() {
			names = append(names, strconv.Itoa(fd))
		}
		return names
	}
	f.List(dir+"fd", numbers, func(name string) string {
		fd, _ := strconv.Atoi(name)
		return p.Descriptor(fd)
	})
}

// net adds the folder net to a directory.
func (p *Process) net(f *FileSystem, dir string) {
	for name, text := range inOrder(p.Net) {
		f.File(dir+"net/"+name, text)
	}
}

// terminated joins strings, each with a terminating NUL.
func terminated(list []string) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString(s)
		b.WriteByte(0)
	}
	return b.String()
}

const (
	pageSize = 4096

	tick = time.Second / 100 // unit of times in /proc (USER_HZ)
)

// Mount is a directory or file that the user has mounted.
type Mount struct {
	Path     string // "/" replaces the root's own line
	Writable bool
	Source   string      // the device; empty: it is in memory
	Kind     string      // type of file system; empty: tmpfs
	Frozen   func() bool // reports whether a writable file system has become read-only; nil: never
}

// MountTables returns the content of /proc/self/mounts and mountinfo (proc(5)). made are mounts that processes have made.
func (p *Process) MountTables(made []fs.Mounted) (mounts, info string) {
	var a, b strings.Builder
	number := 0
	addWith := func(path, kind, name, flags, own, super string) {
		number++
		path = mountEscapes.Replace(path)
		fmt.Fprintf(&a, "%s %s %s %s 0 0\n", name, path, kind, flags)
		fmt.Fprintf(&b, "%d 1 0:%[1]d / %s %s - %s %s %s\n", number, path, own, kind, name, super)
	}
	add := func(path, kind, name, flags string) { addWith(path, kind, name, flags, flags, flags) }
	if !slices.ContainsFunc(p.Mounts, func(m Mount) bool { return m.Path == "/" }) {
		add("/", "tmpfs", "loam", "rw")
	}
	for _, m := range p.Mounts {
		flags := "ro"
		if m.Writable && (m.Frozen == nil || !m.Frozen()) {
			flags = "rw"
		}
		add(m.Path, cmp.Or(m.Kind, "tmpfs"), cmp.Or(m.Source, "loam"), flags)
	}
	access := "ro"
	if p.Writable {
		access = "rw"
	}
	add("/proc", "proc", "proc", access)
	add("/sys", "sysfs", "sysfs", access)
	add(cgroupFolder, "cgroup2", "cgroup2", "ro")
	for _, m := range made {
		own, super := mountFlags(m.Flags), "rw"
		if m.ReadOnly {
			super = "ro"
			m.Flags |= fs.ReadOnlyMount
		}
		addWith(m.Path, m.Kind, cmp.Or(m.Source, "none"), mountFlags(m.Flags), own, super)
	}
	return a.String(), b.String()
}

// mountFlags returns the text of flags.
func mountFlags(f fs.MountFlags) string {
	text := "rw"
	if f&fs.ReadOnlyMount != 0 {
		text = "ro"
	}
	for _, x := range [...]struct {
		flag fs.MountFlags
		name string
	}{{fs.NoSetID, ",nosuid"}, {fs.NoDevices, ",nodev"}, {fs.NoExecute, ",noexec"}} {
		if f&x.flag != 0 {
			text += x.name
		}
	}
	return text
}

// mountEscapes escapes a path for the lines of /proc/PID/mounts and mountinfo.
var mountEscapes = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)

// residentBytes returns the memory used by the program, according to the Go runtime.
func residentBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys - m.HeapReleased
}

func (p *Process) status(name string) string {
	held := residentBytes() / 1024
	return fmt.Sprintf("Name:\t%s\nUmask:\t0022\nState:\tR (running)\nTgid:\t%[2]d\nPid:\t%[2]d\nPPid:\t0\nTracerPid:\t0\n"+
		"Uid:\t%[3]d\t%[3]d\t%[3]d\t%[3]d\nGid:\t%[4]d\t%[4]d\t%[4]d\t%[4]d\nFDSize:\t256\nGroups:\t%[4]d\n"+
		"VmPeak:\t%8[5]d kB\nVmSize:\t%8[5]d kB\nVmHWM:\t%8[5]d kB\nVmRSS:\t%8[5]d kB\nThreads:\t%[6]d\n"+
		"Cpus_allowed_list:\t%[7]s\n",
		name, p.PID, p.UID, p.GID, held, runtime.GOMAXPROCS(0), cpuList())
}

// stat returns the 52 fields of proc_pid_stat(5). Unknown fields are 0.
func (p *Process) stat(name string) string {
	fields := make([]string, 52)
	for i := range fields {
		fields[i] = "0"
	}
	set := func(number int, v any) { fields[number-1] = fmt.Sprint(v) }
	set(1, p.PID)
	set(2, "("+name+")")
	set(3, "R")
	set(5, p.PID)
	set(6, p.PID)
	set(14, int64(p.Used()/tick))
	set(18, 20)
	set(20, runtime.GOMAXPROCS(0))
	held := residentBytes()
	set(23, held)
	set(24, held/pageSize)
	return strings.Join(fields, " ") + "\n"
}

// machine adds the files about the machine.
func (p *Process) machine(f *FileSystem) {
	f.File("meminfo", func() string {
		total, free := p.Memory()
		return fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8[2]d kB\nMemAvailable:   %8[2]d kB\nBuffers:        %8[3]d kB\n"+
			"Cached:         %8[3]d kB\nSwapTotal:      %8[3]d kB\nSwapFree:       %8[3]d kB\n", total/1024, free/1024, 0)
	})
	f.File("cpuinfo", func() string {
		var b strings.Builder
		for i := range runtime.NumCPU() {
			fmt.Fprintf(&b, "processor\t: %d\nmodel name\t: %s\ncpu cores\t: %d\nphysical id\t: 0\ncore id\t: %[1]d\n\n", i, runtime.GOARCH, runtime.NumCPU())
		}
		return b.String()
	})
	f.File("stat", func() string {
		var b strings.Builder
		cpus := time.Duration(runtime.NumCPU())
		busy, idle := p.Used(), p.idle()
		fmt.Fprintf(&b, "cpu  %d 0 0 %d 0 0 0 0 0 0\n", busy/tick, idle/tick)
		for i := range cpus {
			fmt.Fprintf(&b, "cpu%d %d 0 0 %d 0 0 0 0 0 0\n", i, busy/cpus/tick, idle/cpus/tick)
		}
		fmt.Fprintf(&b, "intr 0\nctxt 0\nbtime %d\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq%s\n",
			p.Started.Unix(), strings.Repeat(" 0", 11))
		return b.String()
	})
	f.File("uptime", func() string {
		return fmt.Sprintf("%.2f %.2f\n", time.Since(p.Started).Seconds(), p.idle().Seconds())
	})
	f.File("vmstat", func() string {
		_, free := p.Memory()
		in, out := p.transferred()
		return fmt.Sprintf("nr_free_pages %d\npgpgin %d\npgpgout %d\npswpin 0\npswpout 0\npgfault 0\npgmajfault 0\noom_kill 0\n", free/pageSize, in, out)
	})
	f.File("diskstats", p.diskStats)
	f.File("partitions", p.partitions)
	f.File("devices", p.drivers)
	for _, resource := range [...]string{"cpu", "io", "memory"} {
		f.Fixed("pressure/"+resource, noPressure)
	}
	f.Fixed("loadavg", "0.00 0.00 0.00 1/1 "+strconv.Itoa(p.PID)+"\n")
	f.Fixed("version", "Linux version "+p.Release+" (loam) ("+runtime.Version()+")\n")
	f.Fixed("filesystems", "nodev\ttmpfs\nnodev\tproc\nnodev\tsysfs\nnodev\tcgroup2\n")
	f.Fixed("cmdline", "\n")
}

// idle returns the idle time, summed over all CPUs.
func (p *Process) idle() time.Duration {
	return max(0, time.Since(p.Started)*time.Duration(runtime.NumCPU())-p.Used())
}

// settings adds /proc/sys.
func (p *Process) settings(f *FileSystem) {
	f.File("sys/kernel/hostname", func() string { return p.Hostname() + "\n" })
	f.File("sys/kernel/domainname", func() string { return p.Domain() + "\n" })
	f.Fixed("sys/kernel/osrelease", p.Release+"\n")
	f.Fixed("sys/kernel/ostype", "Linux\n")
	f.Fixed("sys/kernel/version", p.Version+"\n")
	f.Fixed("sys/kernel/pid_max", "32768\n")
	f.Fixed("sys/kernel/tainted", "0\n")
	f.File("sys/kernel/random/boot_id", func() string { return bootID() + "\n" })
	f.File("sys/kernel/random/uuid", func() string { return randomID() + "\n" })
	f.Fixed("sys/net/core/somaxconn", strconv.Itoa(p.Somaxconn)+"\n")
	f.Fixed("sys/net/ipv4/ip_local_port_range", "32768\t60999\n")
	f.Fixed("sys/net/ipv4/ip_unprivileged_port_start", "0\n") // every user may bind every port
	if names := strings.Join(p.Congestions, " "); names != "" {
		f.Fixed("sys/net/ipv4/tcp_congestion_control", p.Congestions[0]+"\n")
		f.Fixed("sys/net/ipv4/tcp_available_congestion_control", names+"\n")
		f.Fixed("sys/net/ipv4/tcp_allowed_congestion_control", names+"\n")
	}
	f.Fixed("sys/net/ipv4/ping_group_range", "0\t2147483647\n") // all groups may use ping sockets
	f.Fixed("sys/net/ipv6/conf/all/disable_ipv6", "0\n")
	f.Fixed("sys/fs/pipe-max-size", "1048576\n")
	f.Fixed("sys/fs/file-max", "1048576\n")
	f.File("sys/fs/file-nr", func() string { return fmt.Sprintf("%d\t0\t1048576\n", len(p.Descriptors())) })
	f.Fixed("sys/kernel/random/entropy_avail", fmt.Sprintln(entropy))
	f.Fixed("sys/kernel/random/poolsize", fmt.Sprintln(entropy))
	f.Fixed("sys/kernel/threads-max", "32768\n")
	f.Fixed("sys/vm/overcommit_memory", "1\n")
}
