//go:build linux

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processorTime is how long the threads of a process group have run, or with 0
// those of this process whose names begin with prefix: by the scheduler's account in nanoseconds, which has in it
// what the kernel did for others meanwhile (interrupts, and on a veth the
// receiver's work) unless the kernel keeps that apart (CONFIG_IRQ_TIME_ACCOUNTING).
func processorTime(group int, prefix string) (time.Duration, error) {
	if group == 0 {
		return threads("/proc/self", prefix)
	}
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, name := range all {
		if groupOf(name) != group {
			continue
		}
		used, err := threads(filepath.Dir(name), "")
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// groupOf reads the process group out of /proc/PID/stat (proc_pid_stat(5)); 0 if
// the process has ended.
func groupOf(name string) int {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	// The name of the program stands in parentheses, and may hold anything.
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	fields := strings.Fields(rest) // state, parent, group
	if len(fields) < 3 {
		return 0
	}
	n, _ := strconv.Atoi(fields[2])
	return n
}

// threads adds up the time of the threads of a process whose names begin with
// prefix. A thread that ends meanwhile is left out.
func threads(process, prefix string) (sum time.Duration, err error) {
	all, err := filepath.Glob(process + "/task/*")
	if err != nil || len(all) == 0 {
		return 0, fmt.Errorf("%s: there is no processor time to be read", process)
	}
	for _, dir := range all {
		if name, _ := os.ReadFile(dir + "/comm"); !strings.HasPrefix(string(name), prefix) {
			continue
		}
		b, err := os.ReadFile(dir + "/schedstat")
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(string(b), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		sum += time.Duration(n)
	}
	return sum, nil
}
