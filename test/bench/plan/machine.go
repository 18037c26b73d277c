package plan

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Machine describes the machine and the versions behind the figures.
type Machine struct {
	CPU    string
	CPUs   int
	Kernel string
	Go     string
	Loam   string // revision; a trailing "+" means local changes
	GVisor string // module version
	Date   string
	// Load is the load average over the last minute before the run: the mean number of running and runnable threads.
	Load string `json:",omitempty"`
}

func thisMachine() Machine {
	m := Machine{
		CPU:    cpuModel(),
		CPUs:   runtime.NumCPU(),
		Kernel: kernelRelease(),
		Go:     runtime.Version(),
		Loam:   revision(),
		Date:   time.Now().UTC().Format(time.DateOnly),
		Load:   loadAverage(),
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
	return m
}

// revision asks git, because go run does not record the revision in the build information.
func revision() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty=+", "--abbrev=12").Output()
	if err != nil {
		return "of an unknown revision"
	}
	return strings.TrimSpace(string(out))
}

// loadAverage returns the first field of proc_loadavg(5).
func loadAverage() string {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

// cpuModel returns the "model name" of the first CPU; see proc_cpuinfo(5).
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
