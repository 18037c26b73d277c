package procfs

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"loam/abi/linux"
)

// The texts of the files, in the formats of proc(5) and of Linux's source (fs/proc/array.c, base.c).

const (
	tick     = time.Second / 100 // a clock tick of proc(5): 1 / USER_HZ
	pageSize = 4096
	infinite = ^uint64(0)
)

// states maps Stat.State to the text in the file status.
var states = map[byte]string{
	'R': "R (running)", 'S': "S (sleeping)", 'D': "D (disk sleep)", 'T': "T (stopped)", 't': "t (tracing stop)",
	'Z': "Z (zombie)", 'X': "X (dead)",
}

// stat returns the 52 fields of proc_pid_stat(5). The parameter open is true if the reader may see addresses.
func (s *Stat) stat(open bool) string {
	priority := 20 + s.Nice
	if s.Priority > 0 {
		priority = -1 - s.Priority
	}
	address := func(a uint64) uint64 {
		if open {
			return a
		}
		return 0
	}
	code := func(a uint64) uint64 { // an address that the reader may not see is shown as 1
		if !open && s.Memory {
			return 1
		}
		return a
	}
	// bits of the field flags: PF_FORKNOEXEC (never shown, because it is not known) and PF_RANDOMIZE
	const forked, randomised = 0x40, 0x400000
	fields := []any{
		s.TID, "(" + s.Name + ")", string(s.State), s.Parent, s.Group, s.Session, s.Terminal, s.TerminalGroup, randomised,
		s.Minor, s.ChildMinor, s.Major, s.ChildMajor,
		int64(s.User / tick), int64(s.System / tick), int64(s.ChildUser / tick), int64(s.ChildSystem / tick),
		priority, s.Nice, s.Threads, 0, int64(s.Started / tick),
		s.Size, s.Resident / pageSize, s.Limits[linux.RLIMIT_RSS].Cur,
		code(s.CodeStart), code(s.CodeEnd), address(s.StackStart), 0, 0,
		s.Pending, s.Blocked, s.Ignored, s.Caught, 0, 0, 0, s.ExitSignal, 0, s.Priority, s.Policy, 0, 0, 0,
		address(s.DataStart), address(s.DataEnd), address(s.BreakStart),
		address(s.ArgStart), address(s.ArgEnd), address(s.EnvStart), address(s.EnvEnd), s.exitCode(open),
	}
	return strings.TrimSuffix(fmt.Sprintln(fields...), "\n") + "\n"
}

func (s *Stat) exitCode(open bool) int {
	if open {
		return s.ExitCode
	}
	return 0
}

// statm returns proc_pid_statm(5).
func (s *Stat) statm() string {
	return fmt.Sprintf("%d %d %d %d 0 %d 0\n", s.Size/pageSize, s.Resident/pageSize, (s.Resident-s.Anonymous)/pageSize,
		s.Code/pageSize, (s.Data+s.Stack)/pageSize)
}

// status returns proc_pid_status(5).
func (s *Stat) status() string {
	var b strings.Builder
	row := func(name, format string, values ...any) { fmt.Fprintf(&b, name+":\t"+format+"\n", values...) }
	c := &s.Credentials
	row("Name", "%s", escaped(s.Name))
	row("Umask", "%04o", s.Umask)
	row("State", "%s", states[s.State])
	row("Tgid", "%d", s.PID)
	row("Ngid", "0")
	row("Pid", "%d", s.TID)
	row("PPid", "%d", s.Parent)
	row("TracerPid", "%d", s.Tracer)
	row("Uid", "%d\t%d\t%d\t%d", c.UID, c.EUID, c.SUID, c.FSUID)
	row("Gid", "%d\t%d\t%d\t%d", c.GID, c.EGID, c.SGID, c.FSGID)
	row("FDSize", "%d", s.TableSize)
	groups := ""
	for _, g := range c.Groups {
		groups += fmt.Sprintf("%d ", g)
	}
	row("Groups", "%s", groups+strings.Repeat(" ", flag(groups == "")))
	row("NStgid", "%d", s.PID)
	row("NSpid", "%d", s.TID)
	row("NSpgid", "%d", s.Group)
	row("NSsid", "%d", s.Session)
	row("Kthread", "0")
	if s.Memory {
		s.statusMemory(&b)
	}
	row("Threads", "%d", s.Threads)
	row("SigQ", "%d/%d", s.Queued, s.Limits[linux.RLIMIT_SIGPENDING].Cur)
	for _, set := range []struct {
		name  string
		value uint64
	}{
		{"SigPnd", s.Pending}, {"ShdPnd", s.SharedPending}, {"SigBlk", s.Blocked}, {"SigIgn", s.Ignored}, {"SigCgt", s.Caught},
		{"CapInh", uint64(c.Inheritable)}, {"CapPrm", uint64(c.Permitted)}, {"CapEff", uint64(c.Effective)},
		{"CapBnd", uint64(c.Bounding)}, {"CapAmb", uint64(c.Ambient)},
	} {
		row(set.name, "%016x", set.value)
	}
	noNew := 0
	if c.NoNewPrivs {
		noNew = 1
	}
	row("NoNewPrivs", "%d", noNew)
	row("Seccomp", "%d", s.Filtered)
	row("Seccomp_filters", "%d", s.Filters)
	row("Speculation_Store_Bypass", "vulnerable")
	row("SpeculationIndirectBranch", "always enabled")
	row("Cpus_allowed", "%s", cpuMask(s.Affinity))
	row("Cpus_allowed_list", "%s", cpuList(s.Affinity))
	row("Mems_allowed", "1")
	row("Mems_allowed_list", "0")
	row("voluntary_ctxt_switches", "%d", s.Voluntary)
	row("nonvoluntary_ctxt_switches", "%d", s.Involuntary)
	return b.String()
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// statusMemory adds the lines about memory.
func (s *Stat) statusMemory(b *strings.Builder) {
	row := func(name string, bytes uint64) { fmt.Fprintf(b, "%s:\t%8d kB\n", name, bytes>>10) }
	row("VmPeak", max(s.Peak, s.Size))
	row("VmSize", s.Size)
	row("VmLck", s.Locked)
	row("VmPin", 0)
	row("VmHWM", max(s.ResidentPeak, s.Resident))
	row("VmRSS", s.Resident)
	row("RssAnon", s.Anonymous)
	row("RssFile", s.Resident-s.Anonymous)
	row("RssShmem", 0)
	row("VmData", s.Data)
	row("VmStk", s.Stack)
	row("VmExe", s.Code)
	row("VmLib", 0)
	row("VmPTE", 0)
	row("VmSwap", 0)
	row("HugetlbPages", 0)
	fmt.Fprintf(b, "CoreDumping:\t0\nTHP_enabled:\t%d\nuntag_mask:\t0xffffffffffffffff\n", flag(!s.SmallPages))
}

// escaped replaces characters of a name that would break the lines of the file.
func escaped(name string) string { return strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(name) }

// cpuMask returns a set of CPUs in hexadecimal groups of 32 bits.
func cpuMask(set []uint64) string {
	var groups []string
	for i := len(set) - 1; i >= 0; i-- {
		groups = append(groups, fmt.Sprintf("%08x", set[i]>>32), fmt.Sprintf("%08x", set[i]&(1<<32-1)))
	}
	for len(groups) > 1 && strings.Trim(groups[0], "0") == "" {
		groups = groups[1:]
	}
	if len(groups) == 0 {
		return "0"
	}
	if groups[0] = strings.TrimLeft(groups[0], "0"); groups[0] == "" {
		groups[0] = "0"
	}
	return strings.Join(groups, ",")
}

// cpuList returns a set of CPUs as ranges.
func cpuList(set []uint64) string {
	var parts []string
	has := func(i int) bool { return i/64 < len(set) && set[i/64]>>(i%64)&1 != 0 }
	last := 0
	for i, w := range set {
		if w != 0 {
			last = i*64 + bits.Len64(w)
		}
	}
	for i := 0; i < last; i++ {
		if !has(i) {
			continue
		}
		first := i
		for has(i + 1) {
			i++
		}
		if first == i {
			parts = append(parts, fmt.Sprint(i))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", first, i))
		}
	}
	return strings.Join(parts, ",")
}

// limitNames are the names and units in the file limits, by resource.
var limitNames = [linux.RLIM_NLIMITS]struct{ name, unit string }{
	{"Max cpu time", "seconds"}, {"Max file size", "bytes"}, {"Max data size", "bytes"}, {"Max stack size", "bytes"},
	{"Max core file size", "bytes"}, {"Max resident set", "bytes"}, {"Max processes", "processes"}, {"Max open files", "files"},
	{"Max locked memory", "bytes"}, {"Max address space", "bytes"}, {"Max file locks", "locks"}, {"Max pending signals", "signals"},
	{"Max msgqueue size", "bytes"}, {"Max nice priority", ""}, {"Max realtime priority", ""}, {"Max realtime timeout", "us"},
}

func (s *Stat) limits() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units")
	value := func(v uint64) string {
		if v == infinite {
			return "unlimited"
		}
		return fmt.Sprint(v)
	}
	for i, l := range limitNames {
		fmt.Fprintf(&b, "%-25s %-20s %-20s ", l.name, value(s.Limits[i].Cur), value(s.Limits[i].Max))
		if l.unit != "" {
			fmt.Fprintf(&b, "%-10s", l.unit)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// io returns proc_pid_io(5). Bytes that are read from or written to a disk are not counted.
func (c Counts) io() string {
	return fmt.Sprintf("rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: %d\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n",
		c.BytesRead, c.BytesWritten, c.Reads, c.Writes)
}

// fdinfo returns proc_pid_fdinfo(5).
func (d *Descriptor) fdinfo() string {
	text := fmt.Sprintf("pos:\t%d\nflags:\t0%o\nmnt_id:\t%d\nino:\t%d\n", d.Offset, d.Flags, d.Mount, d.Inode)
	if d.Extra != nil {
		text += d.Extra()
	}
	return text
}
