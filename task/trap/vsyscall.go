package trap

import "loam/abi/linux"

// The vsyscall page is at the same address in all processes. Programs from before 2011, such as those of CentOS 6, call three
// functions in it. The page is not mapped: an attempt to execute a function causes a page fault, and the kernel makes the call.

const vsyscallPage = 0xffff_ffff_ff60_0000

// Vsyscall returns the number of the system call that does the work of the function at an address of the vsyscall page.
func Vsyscall(addr uint64) (number uint64, ok bool) {
	switch addr {
	case vsyscallPage:
		return linux.SYS_GETTIMEOFDAY, true
	case vsyscallPage + 0x400:
		return linux.SYS_TIME, true
	case vsyscallPage + 0x800:
		return linux.SYS_GETCPU, true
	}
	return 0, false
}
