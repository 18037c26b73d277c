//go:build linux

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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

// SoftirqTime is how long the kernel's threads have run, since it started, that go on with softirqs
// where those who raised them cannot (ksoftirqd). It is part of what a sender costs: much of the receiver's work on
// a veth is a softirq of the sender's. And what the scheduler's account gives to these threads is
// more than they run: when one takes over in the middle of a long system call, it is charged for the call
// since the last tick. Measured with AF_XDP: a tenth of the sender's time, for 6 µs in 20 ms.
func SoftirqTime() (sum time.Duration) {
	for _, dir := range softirqThreads() {
		used, _ := ran(dir)
		sum += used
	}
	return sum
}

// softirqThreads are these threads, one a processor, as folders of /proc; none where it shows others' processes only.
var softirqThreads = sync.OnceValue(func() (list []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if name, _ := os.ReadFile(dir + "/comm"); strings.HasPrefix(string(name), "ksoftirqd/") {
			list = append(list, dir)
		}
	}
	return list
})

// ran is how long a thread has run, by its folder of /proc.
func ran(dir string) (time.Duration, error) {
	b, err := os.ReadFile(dir + "/schedstat")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(b), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	return time.Duration(n), err
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
		used, _ := ran(dir)
		sum += used
	}
	return sum, nil
}
