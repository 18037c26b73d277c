// Command poller reads from a disk until the runtime has deferred the wake of a thread for the poller. Then it computes, and makes
// no call that yields, until a timer, or an interrupt of the disk, has made another goroutine run. It needs two CPUs.
package main

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
	_ "unsafe" // for go:linkname

	"example.com/guest/internal/check"
)

// count returns the number of deferred wakes since the start, and how many of them the stand-in made later.
//
//go:linkname count runtime.loamCountDebts
func count() (debts, payments uint32)

// patience bounds each wait. It is long, so that a busy host does no harm.
const patience = 60 * time.Second

// disk is a disk that is open for direct reads.
type disk struct {
	fd     int
	buffer []byte
}

func open(name string) *disk {
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_DIRECT, 0)
	check.Nil(err, "open")
	b, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	check.Nil(err, "mmap")
	return &disk{fd, b}
}

// read reads a page of the disk and returns the number of deferred wakes.
func (d *disk) read() uint32 {
	n, err := syscall.Pread(d.fd, d.buffer, 0)
	check.Nil(err, "read")
	check.Equal(n, len(d.buffer), "bytes read")
	debts, _ := count()
	return debts
}

// defers reads until the wake of a thread was deferred for the latest read.
func (d *disk) defers() {
	start := time.Now()
	for last := d.read(); time.Since(start) < patience; {
		before := last
		if last = d.read(); last != before {
			return
		}
	}
	check.That(false, "no wake was deferred")
}

// compute waits in a loop until word has another value than before. It makes no call that yields.
func compute(word *atomic.Uint32, before uint32, what string) {
	start := time.Now()
	for word.Load() == before && time.Since(start) < patience {
	}
	check.That(word.Load() != before, "%s did not run", what)
}

const rounds = 10

// paid calls f until it has been called for a number of rounds, and a deferred wake was made later meanwhile.
func paid(what string, f func()) {
	start := time.Now()
	before, made := count()
	for round := 0; ; round++ {
		debts, payments := count()
		if round >= rounds && payments != made {
			return
		}
		if round > rounds && time.Since(start) > patience {
			check.That(false, "%s: of %d deferred wakes, none was made later", what, debts-before)
			return
		}
		f()
	}
}

func main() {
	d := open(os.Args[1])
	var fired atomic.Uint32
	fire := func() { fired.Add(1) }
	paid("timers", func() {
		before := fired.Load()
		time.AfterFunc(2*time.Millisecond, fire)
		d.defers()
		compute(&fired, before, "a timer")
	})
	for range rounds {
		d.defers()
		before := fired.Load()
		time.AfterFunc(time.Millisecond, fire)
		compute(&fired, before, "a timer that was set after the wake was deferred")
	}
	var reads atomic.Uint32
	go func() {
		for other := open(os.Args[1]); ; reads.Add(1) {
			other.read()
		}
	}()
	paid("interrupts", func() {
		d.defers()
		compute(&reads, reads.Load(), "a goroutine that waits for the disk")
	})
	check.Done()
}
