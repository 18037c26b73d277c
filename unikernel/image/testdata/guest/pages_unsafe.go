package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"loam/kernel"
)

// Memory mappings, made by system calls.

const (
	pageSize = 4 << 10
	bigPage  = 2 << 20

	access    = syscall.PROT_READ | syscall.PROT_WRITE
	anonymous = syscall.MAP_ANON | syscall.MAP_PRIVATE
)

// mapping is memory that was mapped by mmap and is unknown to the garbage collector.
type mapping []byte

func newMapping(size int) mapping {
	at, _, errno := syscall.RawSyscall6(syscall.SYS_MMAP, 0, uintptr(size), access, anonymous, ^uintptr(0), 0)
	if errno != 0 {
		panic(errno)
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), size)
}

func (m mapping) call(number, argument uintptr) {
	if _, _, errno := syscall.RawSyscall(number, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), argument); errno != 0 {
		panic(errno)
	}
}

// mark writes n into each page; look panics if a page has lost that number.
func (m mapping) mark(n byte) {
	for i := 0; i < len(m); i += pageSize {
		m[i] = n
	}
}

func (m mapping) look(n byte) {
	for i := 0; i < len(m); i += pageSize {
		if m[i] != n {
			panic(fmt.Sprintf("%d, not %d, at %#x", m[i], n, i))
		}
	}
}

// big returns how many of the mapping's 2 MiB blocks are mapped to 2 MiB of contiguous, aligned physical memory.
func (m mapping) big() int {
	n := 0
	for i := 0; i+bigPage <= len(m); i += bigPage {
		first, _ := kernel.Physical(uint64(uintptr(unsafe.Pointer(&m[i]))))
		last, _ := kernel.Physical(uint64(uintptr(unsafe.Pointer(&m[i+bigPage-pageSize]))))
		if first%bigPage == 0 && last == first+bigPage-pageSize {
			n++
		}
	}
	return n
}

// free returns the number of free pages.
func free() int {
	var s syscall.Sysinfo_t
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SYSINFO, uintptr(unsafe.Pointer(&s)), 0, 0); errno != 0 {
		panic(errno)
	}
	return int(s.Freeram * uint64(s.Unit) / pageSize)
}

// bigPages maps, splits, protects and unmaps memory in big pages, and checks that no free page is lost.
func bigPages() {
	const size, rounds, slack = 16 << 20, 20, 100 // the runtime may take some pages in the meantime
	var before, most int
	for round := range rounds {
		if round == 1 {
			before = free()
		}
		m := newMapping(size)
		m.mark(1)
		most = max(most, m.big())
		hole := m[5<<20+pageSize:][:pageSize*3]
		hole.call(syscall.SYS_MADVISE, syscall.MADV_DONTNEED)
		hole.look(0)
		m[:5<<20+pageSize].look(1)
		m[5<<20+4*pageSize:].look(1)

		part := m[7<<20:][:4<<20]
		part.call(syscall.SYS_MPROTECT, syscall.PROT_NONE)
		part.call(syscall.SYS_MPROTECT, access)
		part.look(1)
		part.mark(2)
		m[11<<20:].look(1)

		m[12<<20-pageSize:].call(syscall.SYS_MUNMAP, 0)
		m[:12<<20-pageSize][6<<20 : 7<<20].look(1)
		m[:12<<20-pageSize].call(syscall.SYS_MUNMAP, 0)
	}
	fmt.Println("big pages", most, "all given back", before-free() < slack)
}

// touch writes to each page of the given number of MiB, and prints the time of the second pass. By then the host has
// given the machine its memory.
func touch() {
	n, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	m := newMapping(n << 20)
	m.mark(1)
	m.call(syscall.SYS_MUNMAP, 0)
	m = newMapping(n << 20)
	begin := time.Now()
	m.mark(1)
	fmt.Println(time.Since(begin).Nanoseconds())
}
