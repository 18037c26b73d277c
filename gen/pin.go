//go:build linux

package gen

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ThreadName is the prefix of the names of the workers' threads. The number of the queue follows, as in "loam-gen 0".
// The kernel shows the name in /proc/PID/task/TID/comm.
const ThreadName = "loam-gen"

// name sets the name of the calling thread and returns a function that restores the old name. Errors are ignored,
// because the name is only informative.
func name(index int) func() {
	const comm = "/proc/thread-self/comm"
	before, err := os.ReadFile(comm)
	if err != nil {
		return func() {}
	}
	os.WriteFile(comm, fmt.Appendf(nil, "%s %d", ThreadName, index), 0)
	return func() { os.WriteFile(comm, before, 0) }
}

// maxCPUs is the number of processors that a unix.CPUSet can represent.
const maxCPUs = 1024

// pin binds the calling thread to a processor of its own, and returns a function that undoes this. If there are more
// workers than processors, workers share processors. pin does nothing if the thread may use fewer than two processors.
func pin(index int) func() {
	var before unix.CPUSet
	if unix.SchedGetaffinity(0, &before) != nil || before.Count() < 2 {
		return func() {}
	}
	index %= before.Count()
	for cpu := range maxCPUs {
		if !before.IsSet(cpu) {
			continue
		}
		if index--; index < 0 {
			var one unix.CPUSet
			one.Set(cpu)
			unix.SchedSetaffinity(0, &one) // an error is ignored: without pinning, the run is only less accurate
			break
		}
	}
	return func() { unix.SchedSetaffinity(0, &before) }
}
