// Package vector copies between the memory of two processes by arrays of struct iovec (process_vm_readv(2)).
package vector

import (
	"loam/abi/linux"
	"loam/posix/call"
)

// Read reads an array of struct iovec. Errors: EINVAL, EFAULT.
func Read(m call.Memory, addr, count uint64) ([]linux.Iovec, linux.Errno) {
	const most = 1024
	if count > most {
		return nil, linux.EINVAL
	}
	b := make([]byte, count*linux.SizeofIovec)
	if errno := m.Read(b, addr); errno != 0 {
		return nil, errno
	}
	all := make([]linux.Iovec, count)
	for i := range all {
		if all[i] = linux.ParseIovec(b[i*linux.SizeofIovec:]); int64(all[i].Len) < 0 {
			return nil, linux.EINVAL
		}
	}
	return all, 0
}

// Transfer copies between the vector local, in the memory m, and the vector remote, in the memory of another process.
// The function move copies between a buffer and that other memory. A transfer that ends early returns the number of
// bytes that it has copied. Errors: EFAULT.
func Transfer(m call.Memory, local, remote []linux.Iovec, move func(b []byte, at uint64) int, write bool) (uint64, linux.Errno) {
	const piece = 64 << 10
	done := uint64(0)
	for len(local) > 0 && len(remote) > 0 {
		n := min(local[0].Len, remote[0].Len, piece)
		got := transfer(m, local[0].Base, make([]byte, n), func(b []byte) int { return move(b, remote[0].Base) }, write)
		done += got
		if got < n {
			break
		}
		local, remote = advance(local, n), advance(remote, n)
	}
	if done == 0 && len(local) > 0 && len(remote) > 0 {
		return 0, linux.EFAULT
	}
	return done, 0
}

// transfer copies one piece between own, an address in the memory m, and the other memory. It returns the number of bytes
// copied.
func transfer(m call.Memory, own uint64, b []byte, move func([]byte) int, write bool) uint64 {
	if write {
		if m.Read(b, own) != 0 {
			return 0
		}
		return uint64(move(b))
	}
	n := move(b)
	if m.Write(own, b[:n]) != 0 {
		return 0
	}
	return uint64(n)
}

// advance skips n bytes of the first element of v, and removes empty elements.
func advance(v []linux.Iovec, n uint64) []linux.Iovec {
	v[0].Base, v[0].Len = v[0].Base+n, v[0].Len-n
	for len(v) > 0 && v[0].Len == 0 {
		v = v[1:]
	}
	return v
}
