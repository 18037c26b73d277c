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

// processorTime returns the processor time of all threads of a process group, or of this process if group is 0. It uses
// the scheduler's accounting, in nanoseconds. This time includes work of the kernel for others that interrupts these
// threads, such as interrupts and, on a veth, the receiver's work, unless the kernel accounts for such work separately
// (CONFIG_IRQ_TIME_ACCOUNTING).
func processorTime(group int) (time.Duration, error) {
	if group == 0 {
		return threads("/proc/self")
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
		used, err := threads(filepath.Dir(name))
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// SoftirqTime returns the processor time, since boot, of the ksoftirqd threads. These are kernel threads that process
// softirqs when the interrupted thread cannot. Their time is part of a sender's cost, because on a veth, much of the
// receiver's work is a softirq of the sender.
//
// The scheduler charges these threads for more time than they run. If one takes over in the middle of a long system
// call, it is charged for the whole time of the call since the last tick. With AF_XDP, a thread that ran for 6 µs in 20
// ms was charged for a tenth of the sender's time.
func SoftirqTime() (sum time.Duration) {
	for _, dir := range softirqThreads() {
		used, _ := ran(dir)
		sum += used
	}
	return sum
}

// softirqThreads returns the /proc directories of the ksoftirqd threads, one thread per processor. It returns
// none in a PID namespace that does not show them.
var softirqThreads = sync.OnceValue(func() (list []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if name, _ := os.ReadFile(dir + "/comm"); strings.HasPrefix(string(name), "ksoftirqd/") {
			list = append(list, dir)
		}
	}
	return list
})

// ran returns the processor time of a thread, given its /proc directory.
func ran(dir string) (time.Duration, error) {
	b, err := os.ReadFile(dir + "/schedstat")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(b), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	return time.Duration(n), err
}

// groupOf returns the process group in a file /proc/PID/stat (proc_pid_stat(5)), or 0 if the process has ended.
func groupOf(name string) int {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	// The program's name is in parentheses and can contain any character.
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	fields := strings.Fields(rest) // fields: state, parent, group
	if len(fields) < 3 {
		return 0
	}
	n, _ := strconv.Atoi(fields[2])
	return n
}

// threads returns the total processor time of the threads of a process. A thread that ends while threads runs is not
// counted.
func threads(process string) (sum time.Duration, err error) {
	all, err := filepath.Glob(process + "/task/*")
	if err != nil || len(all) == 0 {
		return 0, fmt.Errorf("%s: there is no processor time to be read", process)
	}
	for _, dir := range all {
		used, _ := ran(dir)
		sum += used
	}
	return sum, nil
}
