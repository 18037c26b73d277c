package kernel

import (
	"syscall"

	"loam/kernel/space"
)

// What the machine is, for those who ask: uname(2), sysinfo(2).

// release is that of the Linux whose calls these are, as far as they are served.
const release = "6.1.0"

// uname fills a struct utsname: six texts of 65 bytes.
func uname(addr uint64) int64 {
	const field = 65
	if !touch(addr, 6*field, space.Write) {
		return -int64(syscall.EFAULT)
	}
	b := bytesAt(addr, 6*field)
	clear(b)
	for i, text := range [...]string{"Linux", "loam", release, "Loam", "x86_64", "(none)"} {
		copy(b[i*field:], text)
	}
	return 0
}

// sysinfo fills a struct sysinfo: how long the machine runs, and its memory.
func sysinfo(addr uint64) int64 {
	const size, uptime, totalRAM, freeRAM, unit = 112, 0, 32, 40, 104
	if !touch(addr, size, space.Write) {
		return -int64(syscall.EFAULT)
	}
	clear(bytesAt(addr, size))
	free, total := frames.Pages()
	*word(addr + uptime) = uint64(clock.now() / 1e9)
	*word(addr + totalRAM), *word(addr + freeRAM) = total, free
	*word32(addr + unit) = space.PageSize
	return 0
}
