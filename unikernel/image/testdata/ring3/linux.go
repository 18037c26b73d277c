package main

import (
	"bytes"
	"crypto/rand"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"loam/arch/amd64"
	"loam/kernel"
	"loam/kernel/space"
	"loam/kernel/user"
)

// program runs a statically linked Linux program, which the image contains as its files. It implements only the calls
// that a C or Go program needs to start. It shows that user.Run and user.Space suffice; package task has the complete
// implementation.
func program() {
	data := kernel.Files()
	f, err := elf.NewFile(bytes.NewReader(data))
	must(err)
	l := &linux{process: newProcess(spin), waiting: map[uint64][]chan struct{}{}, woken: make(chan struct{}, 1), next: 0x7000_0000_0000}
	l.remove(codeAt, codeAt+amd64.PageSize)
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		l.regions = append(l.regions, region{p.Vaddr &^ (amd64.PageSize - 1), roundUp(p.Vaddr + p.Memsz)})
		l.write(p.Vaddr, data[p.Off:p.Off+p.Filesz])
		l.brk = max(l.brk, roundUp(p.Vaddr+p.Memsz))
	}
	const stack = 1 << 20
	l.regions = append(l.regions, region{stackAt - stack, stackAt})
	c := l.newThread()
	c.Registers().IP = f.Entry
	c.Registers().SP = l.arguments(f, os.Args[2:])
	l.threads.Store(1)
	l.run(c)
}

// linux is the only process.
type linux struct {
	*process
	mu      sync.Mutex // guards all fields below
	regions []region
	brk     uint64
	next    uint64 // address of the next mapping
	waiting map[uint64][]chan struct{}
	threads atomic.Int32

	event [12]byte      // epoll event that the program's poller receives when eventFD is written
	woken chan struct{} // capacity 1; sent by the writer of eventFD, received by poll; full: a wake-up is pending
}

// Descriptors of the poller of Go's runtime. Here the poller waits only for its own wake-ups.
const (
	pollFD  = 10
	eventFD = 11
)

func (l *linux) wakePoller() {
	select {
	case l.woken <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// poll is epoll_pwait(2).
func (l *linux) poll(f *amd64.Frame) int64 {
	var late <-chan time.Time // nil: waits without a limit
	if ms := int32(f.R10); ms >= 0 {
		late = time.After(time.Duration(ms) * time.Millisecond)
	}
	select {
	case <-l.woken:
		l.write(f.SI, l.event[:])
		return 1
	case <-late:
		return 0
	}
}

// region is a range of memory whose pages are allocated on first access.
type region struct{ start, end uint64 }

func roundUp(v uint64) uint64 { return (v + amd64.PageSize - 1) &^ (amd64.PageSize - 1) }

// has makes the page at va present. It returns false if no region contains the address.
func (l *linux) has(va uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.regions {
		if va >= r.start && va < r.end {
			l.add(va&^(amd64.PageSize-1), space.Read|space.Write|space.Execute)
			return true
		}
	}
	return false
}

// remove unmaps the pages of a range and frees them.
func (l *linux) remove(start, end uint64) {
	must(l.Apply([]user.Change{{Action: user.Unmap, Start: start, End: end}}))
	l.process.mu.Lock()
	defer l.process.mu.Unlock()
	for va, pa := range l.owned {
		if va >= start && va < end {
			user.Shared().Give(pa)
			delete(l.owned, va)
		}
	}
}

// read and write copy memory of the process. They allocate its pages as needed.
func (l *linux) read(va uint64, n int) []byte {
	b := make([]byte, n)
	for done := l.Read(va, b); done < n && l.has(va+uint64(done)); {
		done += l.Read(va+uint64(done), b[done:])
	}
	return b
}

func (l *linux) write(va uint64, b []byte) {
	for done := l.Write(va, b); done < len(b) && l.has(va+uint64(done)); {
		done += l.Write(va+uint64(done), b[done:])
	}
}

// arguments fills the initial stack (System V ABI for AMD64, 3.4.1) and returns its pointer.
func (l *linux) arguments(f *elf.File, args []string) uint64 {
	const text, seed = stackAt - 4096, stackAt - 64
	env := []string{"GODEBUG=asyncpreemptoff=1"}
	words := []uint64{uint64(len(args))}
	at := uint64(text)
	for _, list := range [][]string{args, env} {
		for _, s := range list {
			l.write(at, append([]byte(s), 0))
			words = append(words, at)
			at += uint64(len(s)) + 1
		}
		words = append(words, 0)
	}
	const phdr, phent, phnum, pageSize, entry, random = 3, 4, 5, 6, 9, 25
	header := uint64(0)
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Off == 0 {
			header = p.Vaddr + 64
		}
	}
	words = append(words, phdr, header, phent, 56, phnum, uint64(len(f.Progs)), pageSize, amd64.PageSize,
		entry, f.Entry, random, seed, 0, 0)
	sp := (text - uint64(len(words))*8) &^ 15
	for i, w := range words {
		l.write(sp+uint64(i)*8, binary.LittleEndian.AppendUint64(nil, w))
	}
	return sp
}

// run runs a thread until it ends.
func (l *linux) run(c *user.Context) {
	for {
		switch r := c.Run(); r {
		case user.Fault:
			if !l.has(c.FaultAddress()) {
				fmt.Printf("segmentation fault at %#x: %+v\n", c.FaultAddress(), *c.Registers())
				os.Exit(139)
			}
		case user.Exception:
			fmt.Printf("exception: %+v\n", *c.Registers())
			os.Exit(132)
		case user.Call:
			f := c.Registers()
			if f.AX == syscall.SYS_EXIT {
				c.Close()
				if l.threads.Add(-1) == 0 {
					os.Exit(int(f.DI))
				}
				return
			}
			f.AX = uint64(l.call(c, f))
		}
	}
}

// call serves a system call. It returns ENOSYS for calls that are not implemented.
//
// long: it is a table.
func (l *linux) call(c *user.Context, f *amd64.Frame) int64 {
	const rseq, getrandom, setFS = 334, 318, 0x1002
	switch f.AX {
	case syscall.SYS_WRITE:
		if f.DI == eventFD {
			l.wakePoller()
		} else {
			os.Stdout.Write(l.read(f.SI, int(f.DX)))
		}
		return int64(f.DX)
	case syscall.SYS_READ: // the eventfd
		return int64(f.DX)
	case syscall.SYS_EPOLL_CREATE1:
		return pollFD
	case syscall.SYS_EVENTFD2:
		return eventFD
	case syscall.SYS_EPOLL_CTL:
		copy(l.event[:], l.read(f.R10, len(l.event)))
	case syscall.SYS_EPOLL_PWAIT:
		return l.poll(f)
	case syscall.SYS_MMAP:
		return l.mmap(f)
	case syscall.SYS_MUNMAP:
		l.remove(f.DI, f.DI+roundUp(f.SI))
	case syscall.SYS_BRK:
		return l.setBreak(f.DI)
	case syscall.SYS_ARCH_PRCTL:
		if f.DI != setFS || c.SetBases(f.SI, 0) != nil {
			return -int64(syscall.EINVAL)
		}
	case syscall.SYS_CLONE:
		return l.clone(c, f)
	case syscall.SYS_FUTEX:
		return l.futex(f)
	case syscall.SYS_NANOSLEEP:
		t := l.read(f.DI, 16)
		time.Sleep(time.Duration(binary.LittleEndian.Uint64(t)*1e9 + binary.LittleEndian.Uint64(t[8:])))
	case syscall.SYS_CLOCK_GETTIME:
		now := uint64(time.Now().UnixNano())
		l.write(f.SI, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, now/1e9), now%1e9))
	case syscall.SYS_SCHED_GETAFFINITY:
		l.write(f.DX, binary.LittleEndian.AppendUint64(nil, 1<<runtime.NumCPU()-1))
		return 8
	case syscall.SYS_SCHED_YIELD:
		runtime.Gosched()
	case getrandom:
		b := make([]byte, f.SI)
		rand.Read(b)
		l.write(f.DI, b)
		return int64(f.SI)
	case syscall.SYS_GETTID, syscall.SYS_SET_TID_ADDRESS, syscall.SYS_GETPID:
		return 1
	case syscall.SYS_OPENAT:
		return -int64(syscall.ENOENT)
	case syscall.SYS_MPROTECT, syscall.SYS_MADVISE, syscall.SYS_RT_SIGACTION, syscall.SYS_RT_SIGPROCMASK,
		syscall.SYS_SIGALTSTACK, syscall.SYS_SET_ROBUST_LIST, syscall.SYS_FCNTL:
	case syscall.SYS_EXIT_GROUP:
		os.Exit(int(f.DI))
	default:
		return -int64(syscall.ENOSYS)
	}
	return 0
}

func (l *linux) mmap(f *amd64.Frame) int64 {
	const fixed, anonymous = 0x10, 0x20
	size := roundUp(f.SI)
	if f.R10&anonymous == 0 {
		return -int64(syscall.ENODEV)
	}
	if f.R10&fixed != 0 {
		l.remove(f.DI, f.DI+size)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	start := f.DI
	if start == 0 || start+size > user.Limit {
		start = l.next
		l.next += size
	}
	l.regions = append(l.regions, region{start, start + size})
	return int64(start)
}

func (l *linux) setBreak(to uint64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if to > l.brk {
		l.regions = append(l.regions, region{l.brk, roundUp(to)})
		l.brk = roundUp(to)
	}
	return int64(l.brk)
}

// clone starts a thread of the process.
func (l *linux) clone(c *user.Context, f *amd64.Frame) int64 {
	const sameThreads, setTLS = 0x10000, 0x80000
	if f.DI&sameThreads == 0 {
		return -int64(syscall.ENOSYS)
	}
	child := l.newThread()
	*child.Registers() = *f
	child.Registers().AX, child.Registers().SP = 0, f.SI
	if fs, gs := c.Bases(); f.DI&setTLS != 0 {
		must(child.SetBases(f.R8, gs))
	} else {
		must(child.SetBases(fs, gs))
	}
	go l.run(child)
	return int64(l.threads.Add(1))
}

// futex is futex(2), limited to wait and wake, with a timeout.
func (l *linux) futex(f *amd64.Frame) int64 {
	const wait, wake, operation = 0, 1, 0x7f
	addr := f.DI
	l.has(addr)
	l.mu.Lock()
	switch f.SI & operation {
	case wake:
		defer l.mu.Unlock()
		n := min(int(int32(f.DX)), len(l.waiting[addr]))
		for _, w := range l.waiting[addr][:n] {
			close(w)
		}
		l.waiting[addr] = l.waiting[addr][n:]
		return int64(n)
	case wait:
		var now [4]byte
		if l.Read(addr, now[:]); binary.LittleEndian.Uint32(now[:]) != uint32(f.DX) {
			l.mu.Unlock()
			return -int64(syscall.EAGAIN)
		}
		w := make(chan struct{})
		l.waiting[addr] = append(l.waiting[addr], w)
		l.mu.Unlock()
		return l.await(w, addr, f.R10)
	}
	l.mu.Unlock()
	return -int64(syscall.ENOSYS)
}

// await waits for a wake-up, at most for the struct timespec at address timeout.
func (l *linux) await(w chan struct{}, addr, timeout uint64) int64 {
	if timeout == 0 {
		<-w
		return 0
	}
	t := l.read(timeout, 16)
	select {
	case <-w:
		return 0
	case <-time.After(time.Duration(binary.LittleEndian.Uint64(t)*1e9 + binary.LittleEndian.Uint64(t[8:]))):
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range l.waiting[addr] {
		if o == w {
			l.waiting[addr] = append(l.waiting[addr][:i:i], l.waiting[addr][i+1:]...)
			return -int64(syscall.ETIMEDOUT)
		}
	}
	return 0 // a wake-up arrived at the same time
}
