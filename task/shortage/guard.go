// Package shortage frees memory when the kernel's heap, or the pages for processes, run out. The shape is that of Biscuit (OSDI
// 2018, section 6): the Go runtime cannot refuse an allocation, so the kernel keeps a reserve, and a thread that enters the kernel
// while the reserve is in use waits before the call takes any lock. Meanwhile one thread frees memory:
//
//  1. It drops clean pages of the page cache.
//  2. It collects garbage, and returns the free parts of the heap to the machine.
//  3. It kills the processes that use most memory. Their memory includes an estimate of their part of the heap.
//
// Each step is taken only if the one before it did not suffice. A waiting thread holds no lock of the kernel, so each process
// can end, and no deadlock is possible. Without a shortage, a call costs one load of a flag.
package shortage

import (
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"loam/mem"
	"loam/mem/pressure"
)

// Memory is the memory of the machine.
type Memory struct {
	// Short is set by the machine when the heap grows into the last part of the reserve. A Guard clears it.
	Short *atomic.Bool
	// Free returns the number of free pages, and the size of the reserve.
	Free func() (free, reserve int64)
}

// Process is a process that may be killed.
type Process struct {
	pressure.Process // without the number of pages
	Memory           *mem.Map
	Files            interface{ Held() int64 }
	Threads          int
	Ending           bool            // the process is about to free its memory
	Done             <-chan struct{} // closed when the process has freed its memory
	Kill             func()          // ends the process, or only its core dump if it is about to free its memory
}

// pages returns the number of pages that the end of the process would free, with its part of the heap.
func (p *Process) pages() int64 {
	const heapOfThread = 40 << 10 // the stack of a goroutine, and a task with its buffers, in bytes
	u := p.Memory.Usage()
	return u.Pages() + (int64(u.Heap)+p.Files.Held()+int64(p.Threads)*heapOfThread)>>mem.PageShift
}

// Wait waits until the channel is closed or receives a value, or until a time has passed if it is not negative. It returns
// false if the thread must look at its signals.
type Wait func(ready <-chan struct{}, most time.Duration) bool

// Guard frees memory for the threads of a system. At most one thread does so at a time.
type Guard struct {
	memory     Memory
	evict      func(n int) int  // drops at most n clean pages of the page cache, and returns their number
	candidates func() []Process // returns the processes with memory
	total      int64
	turn       chan struct{} // holds a value while no thread frees memory
	collect    func()
}

// New returns a guard for a machine with a number of pages, and Memory.Short. If m is the zero value, the heap has no limit.
func New(m Memory, evict func(n int) int, candidates func() []Process, total int64) (g *Guard, short *atomic.Bool) {
	if m.Short == nil {
		m = Memory{new(atomic.Bool), func() (free, reserve int64) { return 0, 0 }}
	}
	g = &Guard{memory: m, evict: evict, candidates: candidates, total: total, turn: make(chan struct{}, 1), collect: debug.FreeOSMemory}
	g.turn <- struct{}{}
	return g, m.Short
}

const (
	evicted    = 256                    // number of pages of the page cache that are dropped at a time
	patience   = 2 * time.Second        // time after which another process is killed if one does not end
	pause      = 100 * time.Millisecond // time between two checks for memory that is freed after the end of a process
	moment     = time.Millisecond       // time between two attempts to get a page
	mostPauses = 5                      // number of such checks after each kill
	leastIdle  = 1 << 20                // number of bytes in the heap that are worth a collection
	most       = 64                     // largest number of processes that are killed together
)

// Admit waits until the kernel's heap has its reserve again. It returns false if the thread must look at its signals first.
func (g *Guard) Admit(wait Wait) bool {
	if !wait(g.turn, -1) {
		return false
	}
	defer func() { g.turn <- struct{}{} }()
	for waited, pauses := false, 0; !g.settled(); {
		if g.evict(evicted) > 0 {
			continue
		}
		if g.collect(); g.enough() {
			continue
		}
		all := g.candidates()
		ends := ending(all)
		if waited && pauses > 0 { // connections of a killed process may free their buffers later
			pauses--
			if !wait(nil, pause) {
				return false
			}
			continue
		}
		if waited || ends == nil {
			pauses = mostPauses
			free, reserve := g.memory.Free()
			ends = g.kill(all, reserve-free, true)
		}
		waited = true
		if ends == nil {
			g.memory.Short.Store(false) // nothing is left to be freed
			return true
		}
		late := time.Now().Add(patience)
		for _, end := range ends {
			if !wait(end, max(time.Until(late), 0)) {
				return false
			}
		}
	}
	return true
}

// ending returns the channels of the processes that are about to free their memory, whose core dumps it ends.
func ending(all []Process) (ends []<-chan struct{}) {
	for _, p := range all {
		if p.Ending {
			p.Kill()
			ends = append(ends, p.Done)
		}
	}
	return ends
}

// enough reports whether the heap has its reserve, or most of it.
func (g *Guard) enough() bool {
	free, reserve := g.memory.Free()
	return free >= reserve-reserve/8
}

// settled clears the flag if there is enough memory, and reports whether it did. The memory is counted again afterwards, because
// the heap may have grown in between.
func (g *Guard) settled() bool {
	if !g.enough() {
		return false
	}
	g.memory.Short.Store(false)
	if g.enough() {
		return true
	}
	g.memory.Short.Store(true)
	return false
}

// Exhausted frees memory because no page is left for a process. If all processes are protected, it calls killSelf. The caller may hold
// locks, so Exhausted waits at most a moment for a process that ends, and the caller then tries again: without this moment, callers would
// use the CPUs that the process needs to end.
func (g *Guard) Exhausted(killSelf func()) {
	if !g.relieved(killSelf) {
		time.Sleep(moment)
	}
}

// relieved frees memory for Exhausted, and reports whether there is some now.
func (g *Guard) relieved(killSelf func()) bool {
	if g.evict(evicted) > 0 {
		return true
	}
	select {
	case <-g.turn:
	default:
		return false // another thread frees memory
	}
	defer func() { g.turn <- struct{}{} }()
	all := g.candidates()
	if ending(all) != nil {
		return false
	}
	if idle() > leastIdle {
		before, _ := g.memory.Free()
		if g.collect(); g.gained(before) {
			return true
		}
	}
	if g.kill(all, 1, false) == nil {
		killSelf()
	}
	return false
}

// gained reports whether more pages are free than before, and some of them are for processes.
func (g *Guard) gained(before int64) bool {
	free, reserve := g.memory.Free()
	return free > before && free > reserve
}

// idle returns the bytes of the heap that a collection may return to the machine.
func idle() uint64 {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(s)
	objects, live := s[0].Value.Uint64(), s[1].Value.Uint64()
	return objects - min(objects, live) + s[2].Value.Uint64() + s[3].Value.Uint64()
}

// kill kills the process that package pressure chooses. If it is small, similar processes of the same user are killed too, until
// their memory is a number of pages: a process that forks without end is not stopped one by one. It returns a channel for each,
// and nil if no process may be killed.
func (g *Guard) kill(all []Process, pages int64, crowded bool) (ends []<-chan struct{}) {
	var some []pressure.Process
	chosen := map[int]Process{}
	for _, p := range all {
		if !p.Ending {
			p.Pages = p.pages()
			some, chosen[p.ID] = append(some, p.Process), p
		}
	}
	for _, id := range pressure.ChooseSome(g.total, some, pages, most, crowded) {
		chosen[id].Kill()
		ends = append(ends, chosen[id].Done)
	}
	return ends
}
