package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"loam/arch/amd64"
	"loam/kernel/space"
	"loam/kernel/user"
)

// copies copies between the kernel and a process through the mapping of the process. A copy succeeds only on a CPU that
// uses the address space of the process, and only if all pages are mapped for the access. A page of the kernel's buffer
// may be absent.
func copies() {
	p, other := newProcess(calls), newProcess(calls)
	c, d := p.newThread(), other.newThread()
	const pages, absent = 2, dataAt + 3*amd64.PageSize
	var memory [pages][]byte
	for i := range memory {
		memory[i] = user.Shared().Bytes(p.add(dataAt+uint64(i)*amd64.PageSize, space.Read|space.Write))
	}
	p.add(absent-amd64.PageSize, space.Read)
	content := func() []byte { return bytes.Join(memory[:], nil) }
	wrong := 0
	check := func(what string, right bool) {
		if !right {
			wrong++
			fmt.Println("wrong:", what)
		}
	}

	check("read in an address space that no CPU uses", !readDirect(p.Space, dataAt, make([]byte, 8)))
	runOn(d)
	check("read in another address space", !readDirect(p.Space, dataAt, make([]byte, 8)))

	b, got := make([]byte, amd64.PageSize), make([]byte, amd64.PageSize)
	for n := range b {
		b[n] = byte(n*7 + 1)
	}
	for _, at := range []int{0, 1, 13, amd64.PageSize - 64, amd64.PageSize - 1} {
		for n := 0; n <= amd64.PageSize; n += 1 + n/150 {
			want := content()
			copy(want[at:], b[:n])
			check(fmt.Sprint("write of ", n, " bytes"), succeeds(c, func() bool { return writeDirect(p.Space, dataAt+uint64(at), b[:n]) }))
			check(fmt.Sprint("memory after a write of ", n, " bytes"), bytes.Equal(content(), want))
			clear(got)
			check(fmt.Sprint("read of ", n, " bytes"), succeeds(c, func() bool { return readDirect(p.Space, dataAt+uint64(at), got[:n]) }))
			check(fmt.Sprint("result of a read of ", n, " bytes"), bytes.Equal(got[:n], b[:n]) && bytes.Count(got[n:], []byte{0}) == len(got)-n)
		}
	}
	for _, size := range []int{1, 7, 8, 40, 100} {
		small := b[:size]
		check("write to a read-only page", !succeeds(c, func() bool { return writeDirect(p.Space, absent-100, small) }))
		check("read of a read-only page", succeeds(c, func() bool { return readDirect(p.Space, absent-100, small) }))
		check("read of an absent page", !succeeds(c, func() bool { return readDirect(p.Space, absent, small) }))
		check("read of the kernel's memory", !succeeds(c, func() bool { return readDirect(p.Space, 1<<63, small) }))
		check("read of the highest page", !succeeds(c, func() bool { return readDirect(p.Space, user.Limit-1, small) }))
	}
	runOn(c)
	check("bytes before an absent page", p.Read(absent-10, got) == 10)
	runOn(c)
	check("write of bytes to a read-only page", p.Write(absent-10, got) == 0)
	const room = 64 << 20
	fresh, err := syscall.Mmap(-1, 0, room, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE) // its pages are absent
	must(err)
	runOn(c)
	check("write from an absent page, direct", !writeDirect(p.Space, dataAt, fresh[1<<20:][:100]))
	check("write from an absent page", p.Write(dataAt, fresh[1<<20:][:100]) == 100)
	runOn(c)
	check("read to an absent page, direct", !readDirect(p.Space, dataAt, fresh[40<<20:][:100]))
	check("read to an absent page", p.Read(dataAt, fresh[40<<20:][:100]) == 100)
	const access = 1 << 18 // flag AC
	flags, _ := debugState()
	check("flag AC after copies that failed", flags&access == 0)
	check("copies of data with a breakpoint", watched(p, c))
	storedOnce(p, c, check)
	fmt.Println("copied", wrong)
}

// watched copies data that has a breakpoint, which the processor still has after it has left ring 3. It reports whether
// copies succeed on such a CPU.
func watched(p *process, c *user.Context) bool {
	const enable, access, bytes = 1, 3 << 16, 3 << 18 // DR7: breakpoint 0, any access, 4 bytes
	c.SetDebug([4]uint64{dataAt}, enable|access|bytes)
	defer c.SetDebug([4]uint64{}, 0)
	b := make([]byte, 100)
	for _, n := range []int{1, 4, 8, len(b)} {
		c.Restore() // this entry to ring 3 loads the debug registers
		if !succeeds(c, func() bool {
			defer c.Restore()
			_, before := debugState()
			done := writeDirect(p.Space, dataAt, b[:n]) && readDirect(p.Space, dataAt, b[:n])
			_, after := debugState()
			return done && before&after&enable != 0
		}) {
			return false
		}
	}
	return true
}

// storedOnce writes words to the memory of a process, while another goroutine replaces each word by 0 as soon as it sees it, and
// interrupts the writer's CPU. A word that appears again was stored twice.
func storedOnce(p *process, c *user.Context, check func(string, bool)) {
	const words = 60000
	word, other := wordAt(p.owned[dataAt]), uint64(dataAt+64*amd64.PageSize)
	atomic.StoreUint32(word, 0)
	var seen atomic.Uint32
	var stop atomic.Bool
	var done sync.WaitGroup
	again := 0
	done.Go(func() {
		pa, _ := user.Shared().Take()
		defer user.Shared().Give(pa)
		for n := 0; !stop.Load(); n++ {
			if v := atomic.SwapUint32(word, 0); v != 0 {
				if v <= seen.Load() {
					again++
				}
				seen.Store(v)
			}
			switch n % 64 {
			case 0:
				must(p.Apply([]user.Change{{Action: user.Install, Start: other, End: other + amd64.PageSize, Physical: pa, Rights: space.Read}}))
			case 32:
				must(p.Apply([]user.Change{{Action: user.Unmap, Start: other, End: other + amd64.PageSize}}))
			}
			if runtime.NumCPU() == 1 {
				runtime.Gosched()
			}
		}
		must(p.Apply([]user.Change{{Action: user.Unmap, Start: other, End: other + amd64.PageSize}}))
	})
	runOn(c)
	var b [4]byte
	for n := uint32(1); n <= words; n++ {
		binary.NativeEndian.PutUint32(b[:], n)
		p.Write(dataAt, b[:])
		for seen.Load() < n {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	done.Wait()
	check(fmt.Sprint(again, " words stored again"), again == 0)
}

// succeeds runs a thread and calls f, some times, until f returns true on the CPU on which the thread ran.
func succeeds(c *user.Context, f func() bool) bool {
	const tries = 20 // the goroutine may be moved to another CPU between the two
	for range tries {
		runOn(c)
		if f() {
			return true
		}
	}
	return false
}
