// Package vector implements the calls that apply arrays of struct iovec to the memory of another process:
// process_vm_readv(2), process_vm_writev(2) and process_madvise(2).
package vector

import (
	"loam/abi/linux"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/file"
)

// Find returns the memory of the process that an argument of a call selects, and a function that ends the use of the memory.
type Find func(id uint64) (m *mem.Map, leave func(), errno linux.Errno)

// Copy implements process_vm_readv(2), and with write process_vm_writev(2). own is the memory of the caller. If a transfer
// ends early, the result is the number of bytes copied. Errors: EINVAL, EFAULT, and those of find.
func Copy(own call.Memory, a call.Args, write bool, find Find) (uint64, linux.Errno) {
	if a.A6 != 0 {
		return 0, linux.EINVAL
	}
	local, errno := read(own, a.A2, a.A3)
	if errno != 0 {
		return 0, errno
	}
	remote, errno := read(own, a.A4, a.A5)
	if errno != 0 {
		return 0, errno
	}
	m, leave, errno := find(a.A1)
	if errno != 0 {
		return 0, errno
	}
	defer leave()
	access := m.ReadAt
	if write {
		access = m.WriteAt
	}
	return transferAll(own, local, remote, func(b []byte, at uint64) int { n, _ := access(b, at); return n }, write)
}

// Madvise implements process_madvise(2). memory is the memory of the caller, which own describes. mayAdvise is set if the
// caller may give advice about other processes, which is CAP_SYS_NICE. The result is the number of bytes before the first
// range that fails. Errors: EINVAL, EFAULT, EPERM, and those of find and of madvise(2).
func Madvise(memory call.Memory, own *mem.Map, a call.Args, mayAdvise bool, find Find) (uint64, linux.Errno) {
	if uint32(a.A5) != 0 {
		return 0, linux.EINVAL
	}
	ranges, errno := read(memory, a.A2, a.A3)
	if errno != 0 {
		return 0, errno
	}
	for _, r := range ranges {
		if r.Base > mem.End || r.Len > mem.End-r.Base {
			return 0, linux.EFAULT
		}
	}
	m, leave, errno := find(a.A1)
	if errno != 0 {
		return 0, errno
	}
	defer leave()
	advice := int(int32(a.A4))
	switch {
	case m != own && advice != mem.AdviseCold && advice != mem.AdvisePageOut && advice != mem.AdviseWillNeed:
		return 0, linux.EINVAL
	case m != own && !mayAdvise:
		return 0, linux.EPERM
	}
	return advise(m, ranges, advice)
}

// advise gives advice about ranges, of at most MAX_RW_COUNT bytes in total. The advice is checked even if there is no range.
func advise(m *mem.Map, ranges []linux.Iovec, advice int) (done uint64, errno linux.Errno) {
	const most = 1<<31 - mem.PageSize
	err := m.Madvise(0, 0, advice)
	for _, r := range ranges {
		n := min(r.Len, most-done)
		if err == nil {
			err = m.Madvise(r.Base, n, advice)
		}
		if err != nil {
			break
		}
		done += n
	}
	if done > 0 {
		err = nil
	}
	return done, file.ToErrno(err)
}

// read reads an array of struct iovec. Errors: EINVAL, EFAULT.
func read(m call.Memory, addr, count uint64) ([]linux.Iovec, linux.Errno) {
	if count > linux.UIO_MAXIOV {
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

// transferAll copies between the vector local, in the memory m, and the vector remote, in the memory of another process.
// The function move copies between a buffer and that other memory. A transfer that ends early returns the number of
// bytes that it has copied. Errors: EFAULT.
func transferAll(m call.Memory, local, remote []linux.Iovec, move func(b []byte, at uint64) int, write bool) (uint64, linux.Errno) {
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
