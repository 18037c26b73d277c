package schedule

import (
	"encoding/binary"
	"sync/atomic"

	"loam/abi/linux"
	"loam/posix/call"
)

// Binding limits the CPUs that run a thread. The goroutine of the thread binds itself to the CPUs before it enters ring 3. The
// zero value allows all CPUs.
type Binding struct {
	wanted atomic.Uint64 // bit set of the allowed CPUs; 0: all
	bound  uint64        // bit set of the CPUs to which the goroutine is bound; 0: all
}

// Set changes the set of CPUs, and reports whether it differs. The caller then interrupts the thread, which calls Apply.
func (b *Binding) Set(cpus uint64) bool { return b.wanted.Swap(cpus) != cpus }

// Wanted returns the set of CPUs; 0 means all.
func (b *Binding) Wanted() uint64 { return b.wanted.Load() }

// Apply calls bind if the set of CPUs has changed. The goroutine of the thread calls it.
func (b *Binding) Apply(bind func(cpus uint64)) {
	cpus := b.wanted.Load()
	if cpus == b.bound {
		return
	}
	if b.bound != 0 {
		bind(0)
	}
	if b.bound = cpus; cpus != 0 {
		bind(cpus)
	}
}

// getcpu implements getcpu(2). The node is always 0. Errors: EFAULT.
func getcpu(t Caller, a call.Args) (uint64, linux.Errno) {
	for i, addr := range [...]uint64{a.A1, a.A2} {
		value := uint32(t.CPU()) * uint32(1-i)
		if errno := put(t, addr, 4, func(b []byte) { binary.LittleEndian.PutUint32(b, value) }); errno != 0 {
			return 0, errno
		}
	}
	return 0, 0
}
