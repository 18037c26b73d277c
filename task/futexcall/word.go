package futexcall

import "loam/abi/linux"

// The words of futexes. A program changes the words of its locks by atomic instructions while the kernel changes
// them, so the kernel compares and swaps, too. Before the lock of Objects is acquired, an access to the word makes
// the page present, so that no page is loaded while the lock is held.

// expect returns 0 if the word at an address has the given value, and otherwise an error. Errors: EAGAIN,
// EFAULT.
func expect(c Caller, addr uint64, value uint32) linux.Errno {
	v, errno := c.Load(addr)
	if errno == 0 && v != value {
		errno = linux.EAGAIN
	}
	return errno
}

// writable makes the page of a word present and writable. The caller does not hold the lock of Objects.
func writable(c Caller, addr uint64) linux.Errno {
	v, errno := c.Load(addr)
	if errno == 0 {
		_, errno = c.Swap(addr, v, v)
	}
	return errno
}

// update changes a word by a function of its value, atomically, and returns the new value. The function change returns
// an errno to leave the word unchanged. The caller holds the lock of Objects.
func update(c Caller, addr uint64, change func(old uint32) (uint32, linux.Errno)) (uint32, linux.Errno) {
	old, errno := c.Load(addr)
	for errno == 0 {
		var value, found uint32
		if value, errno = change(old); errno != 0 {
			break
		}
		if found, errno = c.Swap(addr, old, value); errno == 0 && found == old {
			return value, 0
		}
		old = found
	}
	return 0, errno
}
