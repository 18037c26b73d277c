package plan

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Machine says where and of what the figures are.
type Machine struct {
	CPU    string
	CPUs   int
	Kernel string
	Go     string
	Loam   string // revision; "+" behind it: with changes
	GVisor string // module version
	Date   string
}

func thisMachine() Machine {
	m := Machine{
		CPU:    cpuModel(),
		CPUs:   runtime.NumCPU(),
		Kernel: kernelRelease(),
		Go:     runtime.Version(),
		Loam:   "unknown",
		Date:   time.Now().UTC().Format(time.DateOnly),
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return m
	}
	for _, dep := range info.Deps {
		if dep.Path == "gvisor.dev/gvisor" {
			m.GVisor = dep.Version
		}
	}
	changed := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			m.Loam = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				changed = "+"
			}
		}
	}
	m.Loam += changed
	return m
}

// cpuModel reads the "model name" of the first CPU; see proc_cpuinfo(5).
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
