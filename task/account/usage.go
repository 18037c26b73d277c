// Package account counts what threads and processes use: CPU time, page faults, transfers (getrusage(2)), timers of CPU time, and the
// load average. Its callers read the clocks.
package account

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/mem"
)

// Usage counts the use of resources by a thread, or the sum of several threads (getrusage(2)). Times are in nanoseconds. The
// goroutine of the thread writes the counters, and any goroutine may read them.
type Usage struct {
	User, System           atomic.Int64
	Minor, Major           atomic.Int64 // page faults without and with input from a disk
	Voluntary, Involuntary atomic.Int64 // context switches: waits (voluntary), and interrupts in ring 3 (involuntary)
	Peak                   atomic.Int64 // largest resident memory in pages

	// counts of system calls such as read(2) and write(2), and bytes that they transferred
	Reads, Writes, BytesRead, BytesWritten atomic.Int64
}

// Add adds the use by another task or process.
func (u *Usage) Add(o *Usage) {
	u.User.Add(o.User.Load())
	u.System.Add(o.System.Load())
	u.Minor.Add(o.Minor.Load())
	u.Major.Add(o.Major.Load())
	u.Voluntary.Add(o.Voluntary.Load())
	u.Involuntary.Add(o.Involuntary.Load())
	u.Reads.Add(o.Reads.Load())
	u.Writes.Add(o.Writes.Load())
	u.BytesRead.Add(o.BytesRead.Load())
	u.BytesWritten.Add(o.BytesWritten.Load())
	u.Peak.Store(max(u.Peak.Load(), o.Peak.Load()))
}

// Total returns the CPU time.
func (u *Usage) Total() time.Duration { return time.Duration(u.User.Load() + u.System.Load()) }

// Put encodes a struct rusage.
func (u *Usage) Put(b []byte) {
	le := binary.LittleEndian
	linux.NanoTimeval(u.User.Load()).Put(b)
	linux.NanoTimeval(u.System.Load()).Put(b[linux.SizeofTimeval:])
	for _, f := range [...]struct {
		at    int
		value int64
	}{
		{32, u.Peak.Load() << mem.PageShift >> 10}, {64, u.Minor.Load()}, {72, u.Major.Load()},
		{128, u.Voluntary.Load()}, {136, u.Involuntary.Load()},
	} {
		le.PutUint64(b[f.at:], uint64(f.value))
	}
}

// Size is the size of struct rusage in bytes (getrusage(2)).
const Size = 144
