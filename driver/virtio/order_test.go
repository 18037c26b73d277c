//go:build linux

package virtio

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"loam/driver"
)

// The driver shows a chain and then asks whether the device wants to hear of it; the
// device says that it wants to, and then looks for chains. One of the two must see
// the other (section 2.7.13.4.1), or both wait for ever. The ring is where a device's
// is, outside Go's heap: there the race detector's own atomic stores are plain ones.
func TestPublishIsOrdered(t *testing.T) {
	const size, rounds = 64, 20000
	memory, err := syscall.Mmap(-1, 0, ringBytes(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(memory)
	r := newRing(size, memory, driver.Buffer{}, true)

	// Each side counts its rounds in one word, and begins one when the other's
	// word has come as far.
	var driverAt, deviceAt atomic.Uint32
	seen := make([]bool, rounds) // by the device
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
		r.availEvent.Swap(i - 1 - size) // long ago
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

// meet waits until the other side has come to the same point.
func meet(mine, other *atomic.Uint32) {
	n := mine.Add(1)
	for spins := 1; other.Load() < n; spins++ {
		if spins%1000 == 0 {
			runtime.Gosched()
		}
	}
}
