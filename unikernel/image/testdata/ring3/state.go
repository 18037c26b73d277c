package main

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"loam/arch/amd64"
	"loam/kernel/space"
	"loam/kernel/user"
)

// state runs threads of two processes that check their registers, on any CPU, during garbage collections.
func state() {
	const threads, calls = 6, 3000
	var wg sync.WaitGroup
	var running atomic.Int32
	var interrupted, bad atomic.Int64
	processes := []*process{newProcess(keep), newProcess(keep)}
	for i := range uint64(threads) {
		p := processes[i%2]
		c := p.newThread()
		f := c.Registers()
		f.R12, f.R13 = 0x1234_5678_9abc+i*0x1_0101_0101, dataAt+i*amd64.PageSize
		must(c.SetBases(f.R12, f.R12))
		p.add(f.R13, space.Read|space.Write)
		running.Add(1)
		wg.Go(func() {
			defer running.Add(-1)
			for n := 0; n < calls; {
				switch r := c.Run(); r {
				case user.Call:
					if n++; n%8 == 0 {
						runtime.Gosched()
					}
				case user.Interrupted:
					interrupted.Add(1)
				default:
					fmt.Printf("%v %+v\n", r, *c.Registers())
					bad.Add(1)
					return
				}
			}
			c.Close()
		})
	}
	for running.Load() > 0 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	wg.Wait()
	for _, p := range processes {
		p.close()
	}
	fmt.Println("state", bad.Load(), interrupted.Load() > 0)
}

// Words with which pages are filled: good while a page belongs to the process, bad after the kernel has taken it away.
const (
	good   = 0x600d_600d_600d_600d
	poison = 0xbad0_bad0_bad0_bad0
)

// spaces unmaps pages while threads read them and while they are being copied. No reader may see the content that the
// page gets afterwards.
func spaces() {
	const rounds = 900
	p := newProcess(watch)
	var stop atomic.Bool
	var wg sync.WaitGroup
	var bad, faults, copies, direct atomic.Int64
	for range 3 {
		c := p.newThread()
		c.Registers().R12, c.Registers().R13 = poison, dataAt
		wg.Go(func() {
			defer c.Close()
			for !stop.Load() {
				switch r := c.Run(); r {
				case user.Interrupted:
				case user.Fault:
					faults.Add(1)
					runtime.Gosched()
				default:
					bad.Add(1)
					return
				}
			}
		})
	}
	wg.Go(func() {
		b := make([]byte, amd64.PageSize)
		check := func(n int) {
			for i := 0; i < n; i += 8 {
				if binary.LittleEndian.Uint64(b[i:]) != good {
					bad.Add(1)
				}
			}
		}
		for !stop.Load() {
			check(p.Read(dataAt, b[:512]))
			copies.Add(1)
			for _, n := range []int{8, 512, len(b)} { // the CPUs use no other address space
				if readDirect(p.Space, dataAt, b[:n]) {
					check(n)
					direct.Add(1)
				}
			}
			runtime.Gosched()
		}
	})
	var old uint64
	most := 0
	for n := range rounds {
		pa, _ := user.Shared().Take()
		fill(pa, good)
		changes := []user.Change{{Action: user.Install, Start: dataAt, End: dataAt + amd64.PageSize, Physical: pa, Rights: space.Read}}
		switch n % 3 {
		case 1:
			must(p.Apply([]user.Change{{Action: user.Unmap, Start: dataAt, End: dataAt + amd64.PageSize}}))
			fill(old, poison)
		case 2: // both in one batch, together with their page tables
			changes = append([]user.Change{{Action: user.Unmap, Start: dataAt, End: dataAt + 1<<30}}, changes...)
		}
		must(p.Apply(changes))
		most = max(most, p.CPUs())
		if old != 0 {
			fill(old, poison)
			user.Shared().Give(old)
		}
		old = pa
		if n%16 == 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	stop.Store(true)
	wg.Wait()
	p.close()
	seen := faults.Load() > 0 || runtime.NumCPU() == 1 // on one CPU, all of it may happen between two interrupts
	fmt.Println("spaces", bad.Load(), seen, copies.Load() > 0 && direct.Load() > 0, most == runtime.NumCPU())
}

// fill fills a physical page with a word.
func fill(pa, word uint64) {
	b := user.Shared().Bytes(pa)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], word)
	}
}

// kick interrupts a thread that never enters the kernel by itself. Another goroutine does so each time it sees the
// thread run.
func kick() {
	rounds := int64(500)
	if runtime.NumCPU() == 1 {
		rounds = 20 // the other goroutine runs only after the runtime has preempted this one, after 10 ms
	}
	p := newProcess(count)
	p.add(dataAt, space.Read|space.Write)
	c := p.newThread()
	c.Registers().R13 = dataAt
	back := make(chan struct{})
	var want atomic.Int64
	go func() {
		for n := int64(0); n < rounds; {
			if r := c.Run(); r != user.Interrupted {
				fmt.Println("kick", r, *c.Registers())
			}
			if want.Load() > n { // otherwise the thread was interrupted for another reason
				n++
				back <- struct{}{}
			}
		}
		close(back)
	}()
	var last, now [8]byte
	for range rounds {
		for last == now {
			p.Read(dataAt, now[:])
			runtime.Gosched()
		}
		last = now
		want.Add(1)
		c.Kick()
		<-back
	}
	<-back
	c.Close()
	p.close()
	fmt.Println("kicked")
}

// churn creates and closes processes that have pages in distant parts of their address space, and checks that no page
// is lost.
func churn() {
	const rounds, places, slack = 1500, 4, 4 << 20
	free := func() uint64 {
		var info syscall.Sysinfo_t
		must(syscall.Sysinfo(&info))
		return info.Freeram * uint64(info.Unit)
	}
	once := func() {
		p := newProcess(touch)
		c := p.newThread()
		for i := range uint64(places) {
			f := c.Registers()
			f.IP, f.DI, f.R13 = codeAt, 1<<(24+6*i), 1
			if runOn(c) != user.Fault {
				panic("no fault")
			}
			p.add(c.FaultAddress(), space.Read|space.Write)
			if runOn(c) != user.Call {
				panic("no call")
			}
		}
		c.Close()
		p.close()
	}
	for range 100 { // fills caches of the kernel and the runtime first
		once()
	}
	before := free()
	for range rounds {
		once()
	}
	fmt.Println("churned", free()+slack > before)
}
