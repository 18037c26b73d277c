//go:build linux

package gen

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ThreadName is the prefix of the workers' thread names. The queue number follows, as in "loam-gen 0". The kernel
// shows the name in /proc/PID/task/TID/comm.
const ThreadName = "loam-gen"

// name names the calling thread and returns a function that restores the old name. Errors are ignored because the
// name is only informative.
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

// pin binds the calling thread to a processor of its own and returns a function that undoes it. With more workers
// than processors, workers share. It does nothing if fewer than two processors are allowed.
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
			unix.SchedSetaffinity(0, &one) // best effort: pinning only improves accuracy
			break
		}
	}
	return func() { unix.SchedSetaffinity(0, &before) }
}
