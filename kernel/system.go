package kernel

import (
	"loam/abi/linux"
	"loam/kernel/space"
)

// Information about the machine: uname(2), sysinfo(2), getcpu(2), getrusage(2).

// release is the version of Linux whose system calls the kernel implements, as far as it supports them.
const release = "6.1.0"

// uname fills a struct utsname: six texts of 65 bytes.
func (k *core) uname(addr uint64) int64 {
	const field = 65
	if !k.touch(addr, 6*field, space.Write) {
		return -int64(linux.EFAULT)
	}
	b := bytesAt(addr, 6*field)
	clear(b)
	for i, text := range [...]string{"Linux", "loam", release, "Loam", "x86_64", "(none)"} {
		copy(b[i*field:], text)
	}
	return 0
}

// sysinfo fills a struct sysinfo with the uptime, the memory sizes in bytes and the number of threads. Other fields are
// zero.
func (k *core) sysinfo(addr uint64) int64 {
	const size, uptime, totalRAM, freeRAM, procs, unit = 112, 0, 32, 40, 80, 104
	if !k.touch(addr, size, space.Write) {
		return -int64(linux.EFAULT)
	}
	clear(bytesAt(addr, size))
	free, total := k.pages.Pages()
	*word(addr + uptime) = uint64(k.clock.now() / 1e9)
	*word(addr + totalRAM), *word(addr + freeRAM) = total*space.PageSize, free*space.PageSize
	*word32(addr + procs) = uint32(min(k.threads.Count(), 1<<16-1))
	*word32(addr + unit) = 1
	return 0
}

// where implements getcpu(2). The NUMA node is always 0.
func (k *core) where(c *cpu, number, node uint64) int64 {
	for _, addr := range [...]uint64{number, node} {
		if addr == 0 {
			continue
		}
		if !k.touch(addr, 4, space.Write) {
			return -int64(linux.EFAULT)
		}
		*word32(addr) = 0
	}
	if number != 0 {
		*word32(number) = uint32(c.number)
	}
	return 0
}

// usage fills a struct rusage (getrusage(2)) with the CPU time of the program or the thread, all of it as user time, and
// with the most memory that was in use when the call was made, in KiB. Other fields are zero.
func (k *core) usage(c *cpu, who int, addr uint64) int64 {
	const size, maxRSS, children, thread = 144, 32, -1, 1
	var t int64
	switch who {
	case 0:
		t = k.clock.now() + k.processUsed - c.chargedAt
	case thread:
		t = k.clock.now() + k.threads.At(c.current).Used - c.chargedAt
	case children:
	default:
		return -int64(linux.EINVAL)
	}
	if !k.touch(addr, size, space.Write) {
		return -int64(linux.EFAULT)
	}
	clear(bytesAt(addr, size))
	*word(addr), *word(addr + 8) = uint64(t/1e9), uint64(t%1e9/1e3)
	if who != children {
		free, total := k.pages.Pages()
		k.mostUsed = max(k.mostUsed, total-free)
		*word(addr + maxRSS) = k.mostUsed * (space.PageSize >> 10)
	}
	return 0
}
