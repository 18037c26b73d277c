//go:build !race

package image

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"loam/boot"
)

// While the host does not run the CPU that holds the kernel's lock, the other CPUs sleep and use no CPU time of the
// host. The test stops the CPU through QEMU's debugger stub.
func TestDoze(t *testing.T) {
	locked, _ := functionNamed(t, built(t), "loam/kernel.(*core).choose")
	sleeps := [][2]uint64{}
	for _, name := range []string{"loam/arch/amd64.Doze", "loamIdle"} {
		start, end := functionNamed(t, built(t), name)
		sleeps = append(sleeps, [2]uint64{start, end})
	}
	all := []int{1, 2, 3}
	vm := startHeld(t, boot.Config{Args: []string{"guest", "crowd"}}, len(all))
	vm.resume(all...)
	vm.expect("ready\n")
	vm.stop()
	for range 5 {
		holder := vm.runTo(locked, all...)
		others := slices.DeleteFunc(slices.Clone(all), func(n int) bool { return n == holder })
		for tick, doze := time.Tick(20*time.Millisecond), 0; doze != len(others); <-tick {
			vm.resume(others...)
			<-tick
			vm.stop()
			doze = 0
			for _, n := range others {
				at := vm.instructionOf(n)
				if slices.ContainsFunc(sleeps, func(f [2]uint64) bool { return at >= f[0] && at < f[1] }) {
					doze++
				}
			}
		}
	}
	vm.resume(all...)
	fmt.Fprint(vm.in, "\x03")
	vm.expect("interrupt\n")
}
