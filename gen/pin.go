//go:build linux

package gen

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ThreadName is what the threads of workers are called, with the number of their
// queue behind it: "loam-gen 0". The kernel shows it in /proc/PID/task/TID/comm.
const ThreadName = "loam-gen"

// name gives the calling thread its name, and returns what undoes that. Names are
// for those who look on: errors do not matter.
func name(index int) func() {
	const comm = "/proc/thread-self/comm"
	before, err := os.ReadFile(comm)
	if err != nil {
		return func() {}
	}
	os.WriteFile(comm, fmt.Appendf(nil, "%s %d", ThreadName, index), 0)
	return func() { os.WriteFile(comm, before, 0) }
}

// maxCPUs is how many processors a unix.CPUSet tells of.
const maxCPUs = 1024

// pin keeps the calling thread on a processor of its own, if there are enough,
// and returns what undoes that.
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
			unix.SchedSetaffinity(0, &one) // a wish
			break
		}
	}
	return func() { unix.SchedSetaffinity(0, &before) }
}
