//go:build linux

package virtio

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"loam/abi/linux"
	"loam/driver"
)

// The driver publishes a chain and then checks whether the device wants a notification. The device requests a
// notification and then checks for chains. At least one of them must see the other's write (virtio 1.2 section
// 2.7.13.4.1): otherwise both wait for ever. The ring is outside of Go's heap, as in a guest, where the race detector's
// atomic stores are ordinary stores.
func TestPublishIsOrdered(t *testing.T) {
	const size, rounds = 64, 20000
	memory, err := syscall.Mmap(-1, 0, ringBytes(size), linux.PROT_READ|linux.PROT_WRITE, linux.MAP_ANON|linux.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(memory)
	r := newRing(size, MaxSegments, memory, driver.Buffer{}, true)

	// Each side counts its steps in one word, and starts a step when the other side's word has reached the same
	// count.
	var driverAt, deviceAt atomic.Uint32
	seen := make([]bool, rounds) // by round: the device has seen the chain of that round
	done := make(chan struct{})  // closed by the device after its last round
	go func() {
		defer close(done)
		for i := range uint32(rounds) {
			meet(&deviceAt, &driverAt)
			r.availEvent.Swap(i)
			seen[i] = uint16(r.availIndex.Load()>>16) != uint16(i)
			meet(&deviceAt, &driverAt)
		}
	}()
	wanted := make([]bool, rounds)
	for i := range uint32(rounds) {
		r.availEvent.Swap(i - 1 - size) // an event index that passed long ago: it requests no notification from the driver
		r.added++
		meet(&driverAt, &deviceAt)
		wanted[i] = r.Publish()
		meet(&driverAt, &deviceAt)
	}
	<-done
	for i := range rounds {
		if !seen[i] && !wanted[i] {
			t.Fatalf("round %d: the device sees no chain, and the driver does not notify it", i)
		}
	}
}

// meet waits until the other side has reached the same step.
func meet(mine, other *atomic.Uint32) {
	n := mine.Add(1)
	for spins := 1; other.Load() < n; spins++ {
		if spins%1000 == 0 {
			runtime.Gosched()
		}
	}
}
