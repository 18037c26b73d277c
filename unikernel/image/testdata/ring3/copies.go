package main

import (
	"bytes"
	"fmt"

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
		check("read in another address space", !succeeds(d, func() bool { return readDirect(p.Space, dataAt, small) }))
	}
	check("bytes before an absent page", p.Read(absent-10, got) == 10 && p.Write(absent-10, got) == 0)
	fresh := make([]byte, 64<<20) // its pages are absent
	check("write from an absent page", p.Write(dataAt, fresh[1<<20:][:100]) == 100)
	check("read to an absent page", p.Read(dataAt, fresh[40<<20:][:100]) == 100)
	fmt.Println("copied", wrong)
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
