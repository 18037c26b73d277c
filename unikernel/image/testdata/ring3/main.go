// Command ring3 runs threads in ring 3 and prints whether they behaved correctly.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"loam/arch/amd64"
	"loam/kernel/space"
	"loam/kernel/user"
)

// cases are the tests, by the first argument.
var cases = map[string]func(){
	"proof":   proof,
	"bench":   bench,
	"hostile": hostile,
	"state":   state,
	"xsave":   func() { userVectors = 0; state() },
	"spaces":  spaces,
	"kick":    kick,
	"churn":   churn,
	"copies":  copies,
	"program": program,

	"isolated": isolated,
	"endless":  endless,
	"idle":     idle,
}

func main() { cases[os.Args[1]]() }

// Addresses of a process's code, stack and data.
const (
	codeAt  = 0x40_0000
	stackAt = 0x7fff_0000_0000
	dataAt  = 0x1000_0000
)

// process is an address space with the pages that it owns.
type process struct {
	*user.Space
	mu    sync.Mutex
	owned map[uint64]uint64 // virtual address to physical page
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// newProcess creates a process with a code fragment at codeAt and a stack of one page.
func newProcess(fragment int) *process {
	s, err := user.NewSpace()
	must(err)
	p := &process{Space: s, owned: map[uint64]uint64{}}
	copy(user.Shared().Bytes(p.add(codeAt, space.Read|space.Execute)), code(fragment))
	p.add(stackAt-amd64.PageSize, space.Read|space.Write)
	return p
}

// add maps a new page, and returns its physical address.
func (p *process) add(va uint64, rights space.Rights) uint64 {
	pa, ok := user.Shared().TakeZeroed()
	if !ok {
		panic("no page")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, ok := p.owned[va]; ok {
		user.Shared().Give(pa)
		return old
	}
	p.owned[va] = pa
	must(p.Apply([]user.Change{{Action: user.Install, Start: va, End: va + amd64.PageSize, Physical: pa, Rights: rights}}))
	return pa
}

// close frees the process and its pages.
func (p *process) close() {
	p.Close()
	for _, pa := range p.owned {
		user.Shared().Give(pa)
	}
}

// newThread creates a thread that starts at codeAt.
func (p *process) newThread() *user.Context {
	c, err := user.NewContext(p.Space)
	must(err)
	c.Registers().IP, c.Registers().SP = codeAt, stackAt
	return c
}

// proof runs one thread of each kind at the same time, during garbage collections.
func proof() {
	const rounds = 20000
	var done atomic.Int32
	var wg sync.WaitGroup
	var interrupted, collections atomic.Int64
	run := func(number int, serve func(p *process, c *user.Context, r user.Reason) bool) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer done.Add(1)
			p := newProcess(number)
			defer p.close()
			c := p.newThread()
			defer c.Close()
			for n := 0; n < rounds; {
				r := c.Run()
				if r == user.Interrupted {
					interrupted.Add(1)
					continue
				}
				if !serve(p, c, r) {
					fmt.Printf("%d: %v %+v\n", number, r, c.Registers())
					return
				}
				n++
			}
		}()
	}
	run(calls, func(p *process, c *user.Context, r user.Reason) bool {
		f := c.Registers()
		ok := r == user.Call && f.AX == 39 && f.BX == 0
		f.AX, f.R12 = 1234, 1234
		return ok
	})
	run(touch, func(p *process, c *user.Context, r user.Reason) bool {
		f := c.Registers()
		if r == user.Call {
			f.R13 = 2
			return true
		}
		ok := r == user.Fault && c.FaultAddress() == f.DI
		if f.DI == 0 {
			f.DI, f.R13 = dataAt, 2
			return ok
		}
		p.add(f.DI, space.Read|space.Write)
		return ok
	})
	run(divide, func(p *process, c *user.Context, r user.Reason) bool {
		return r == user.Exception && c.Registers().Vector == amd64.VectorDivide
	})
	const least = 20 // least number of interrupts and of collections
	finished := func() bool {
		return done.Load() == 3 && interrupted.Load() >= least && collections.Load() >= least
	}
	wg.Go(func() {
		p := newProcess(spin)
		defer p.close()
		c := p.newThread()
		defer c.Close()
		for !finished() {
			if r := c.Run(); r != user.Interrupted {
				fmt.Println("spin", r, c.Registers())
				return
			}
			interrupted.Add(1)
		}
	})
	for !finished() {
		runtime.GC()
		collections.Add(1)
		time.Sleep(time.Millisecond)
	}
	wg.Wait()
	fmt.Println("proved")
}

// bench prints the shortest of several rounds, in nanoseconds and in ticks of the CPU's counter, for three operations:
// a system call from ring 3 that does nothing; a call of the Go runtime to the kernel's core; and a page fault that is
// served with a new page.
func bench() {
	const n, rounds = 1 << 16, 8
	p := newProcess(calls)
	c := p.newThread()
	measure("call", rounds, n, func() {
		for i := 0; i < n; {
			if c.Run() == user.Call {
				i++
				c.Registers().AX, c.Registers().R12 = 1, 1
			}
		}
	})
	measure("core", rounds, n, func() {
		for range n {
			syscall.RawSyscall(syscall.SYS_GETTID, 0, 0, 0)
		}
	})
	q := newProcess(touch)
	d := q.newThread()
	d.Registers().DI, d.Registers().R13 = dataAt, 1<<40
	const faults = 1 << 11
	measure("fault", rounds, faults, func() {
		for i := 0; i < faults; {
			if d.Run() == user.Fault {
				i++
				q.add(d.FaultAddress(), space.Read|space.Write)
			}
		}
	})
}

// measure prints the time of one of the n operations that f performs.
func measure(name string, rounds, n int, f func()) {
	nanos, ticks := 1e18, 1e18
	for range rounds {
		start, first := time.Now(), amd64.Timestamp()
		f()
		ticks = min(ticks, float64(amd64.Timestamp()-first)/float64(n))
		nanos = min(nanos, float64(time.Since(start).Nanoseconds())/float64(n))
	}
	fmt.Printf("%s %.0f ns %.0f ticks\n", name, nanos, ticks)
}
