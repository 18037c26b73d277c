package pseudo

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"strings"
	"sync"
)

// Sys returns a file system for /sys: CPUs, clock source, network interfaces, and the size of huge
// pages, which the Go runtime reads (sysfs(5)).
func Sys(p Process) *FileSystem {
	f := New(SysMagic)
	for name, files := range inOrder(p.Interfaces) {
		dir := "devices/virtual/net/" + name
		f.Link("class/net/"+name, func() string { return "../../" + dir })
		f.Link(dir+"/subsystem", func() string { return "../../../../class/net" })
		for path, text := range inOrder(files) {
			f.File(dir+"/"+path, text)
		}
	}
	for _, name := range [...]string{"online", "possible", "present"} {
		f.File("devices/system/cpu/"+name, func() string { return cpuList() + "\n" })
	}
	f.Fixed("devices/system/cpu/offline", "\n")
	f.Fixed("devices/system/cpu/isolated", "\n")
	for i := range runtime.NumCPU() {
		addCPU(f, i)
	}
	if p.ClockSource != "" {
		const dir = "devices/system/clocksource/clocksource0/"
		f.Fixed(dir+"current_clocksource", p.ClockSource+"\n")
		f.Fixed(dir+"available_clocksource", p.ClockSource+" \n") // each name is followed by a space, as on Linux
	}
	p.disks(f)
	p.hugePages(f)
	for path, s := range inOrder(p.Settings) {
		f.setting(path, s)
	}
	if p.Meltdown != "" {
		f.Fixed("devices/system/cpu/vulnerabilities/meltdown", p.Meltdown+"\n")
	}
	f.Folder("fs/cgroup") // mount point of Cgroup
	return f
}

// HugePagePolicy is the path in /sys of the setting that selects which memory may have huge pages.
const HugePagePolicy = hugePageFolder + "enabled"

const hugePageFolder = "kernel/mm/transparent_hugepage/"

// hugePages adds the files about huge pages. Page faults do not move other pages to get a huge page (defrag), and there is
// no huge page of zeros.
func (p *Process) hugePages(f *FileSystem) {
	f.Fixed(hugePageFolder+"hpage_pmd_size", "2097152\n")
	f.Fixed(hugePageFolder+"defrag", "always defer defer+madvise madvise [never]\n")
	f.Fixed(hugePageFolder+"use_zero_page", "0\n")
	if _, ok := p.Settings[HugePagePolicy]; !ok {
		f.Fixed(HugePagePolicy, "always [madvise] never\n")
	}
}

// addCPU adds the directory of a CPU. Every CPU is its own core, and all are in one package.
func addCPU(f *FileSystem, number int) {
	dir := fmt.Sprintf("devices/system/cpu/cpu%d/", number)
	only := fmt.Sprintf("%d\n", number)
	f.Fixed(dir+"online", "1\n")
	f.Fixed(dir+"topology/core_id", only)
	f.Fixed(dir+"topology/physical_package_id", "0\n")
	for _, name := range [...]string{"thread_siblings", "core_cpus"} {
		f.Fixed(dir+"topology/"+name, cpuMask(number, number+1, runtime.NumCPU()))
		f.Fixed(dir+"topology/"+name+"_list", only)
	}
	for _, name := range [...]string{"core_siblings", "package_cpus"} {
		f.File(dir+"topology/"+name, func() string { return cpuMask(0, runtime.NumCPU(), runtime.NumCPU()) })
		f.File(dir+"topology/"+name+"_list", func() string { return cpuList() + "\n" })
	}
}

// cpuMask returns the CPUs from first to end-1 of all CPUs as a line with a set of bits, in groups of 32, the highest group
// first: "1,00000000".
func cpuMask(first, end, all int) string {
	const group = 32
	var b strings.Builder
	for at := (all - 1) / group * group; at >= 0; at -= group {
		bits := uint32(0)
		for i := max(first, at); i < min(end, at+group); i++ {
			bits |= 1 << (i - at)
		}
		width := min(group, all-at) // the highest group has as many digits as its CPUs need
		fmt.Fprintf(&b, "%0*x", (width+3)/4, bits)
		if at > 0 {
			b.WriteByte(',')
		}
	}
	return b.String() + "\n"
}

// cpuList returns the CPUs as a range: "0-3".
func cpuList() string {
	n := runtime.NumCPU()
	if n == 1 {
		return "0"
	}
	return fmt.Sprintf("0-%d", n-1)
}

// bootID returns an ID that is constant until the next start.
var bootID = sync.OnceValue(randomID)

// randomID returns a random UUID (RFC 9562 section 5.4).
func randomID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
