package posix

import (
	"encoding/binary"
	"syscall"

	"loam/posix/bpf"
	"loam/stack"
)

// Filters of UDP sockets (socket(7)): which datagrams a program wants.

// FilterInstructionLen is the size of struct sock_filter in bytes. The value of
// SO_ATTACH_FILTER is these themselves here, and not where they lie.
const FilterInstructionLen = 8

// filterOption sets and takes away a filter, and reports whether it knows the option.
// Errors: EINVAL, and ENOENT if there is none to take away.
func (s *udpSocket) filterOption(name int, value []byte) (Errno, bool) {
	var f stack.Filter
	switch name {
	case syscall.SO_ATTACH_FILTER:
		p, err := bpf.New(instructions(value))
		if err != nil {
			return syscall.EINVAL, true
		}
		f = p.Run
	case syscall.SO_DETACH_FILTER:
	default:
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == nil && s.filter == nil {
		return syscall.ENOENT, true
	}
	s.filter = f
	if c := s.conn.Load(); c != nil {
		c.SetFilter(f)
	}
	return 0, true
}

// instructions reads an array of struct sock_filter.
func instructions(b []byte) []bpf.Instruction {
	var list []bpf.Instruction
	for ; len(b) >= FilterInstructionLen; b = b[FilterInstructionLen:] {
		list = append(list, bpf.Instruction{
			Code: binary.NativeEndian.Uint16(b), JT: b[2], JF: b[3], K: binary.NativeEndian.Uint32(b[4:]),
		})
	}
	return list
}
