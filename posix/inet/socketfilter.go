package inet

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/bpf"
	"loam/stack"
)

// Packet filters of UDP sockets (SO_ATTACH_FILTER, socket(7)).

// filterOption attaches or detaches a filter, and reports whether it knows the option. Errors: EINVAL;
// ENOENT if no filter is attached.
func (s *UDPSocket) filterOption(name int, value []byte) (linux.Errno, bool) {
	var f stack.Filter
	switch name {
	case linux.SO_ATTACH_FILTER:
		p, err := bpf.New(FilterInstructions(value))
		if err != nil {
			return linux.EINVAL, true
		}
		f = p.Run
	case linux.SO_DETACH_FILTER:
	default:
		return 0, false
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if f == nil && s.filter == nil {
		return linux.ENOENT, true
	}
	s.filter = f
	if c := s.conn.Load(); c != nil {
		c.SetFilter(f)
	}
	return 0, true
}

// FilterInstructions parses an array of struct sock_filter.
func FilterInstructions(b []byte) []bpf.Instruction {
	var list []bpf.Instruction
	for ; len(b) >= linux.SizeofSockFilter; b = b[linux.SizeofSockFilter:] {
		list = append(list, bpf.Instruction{
			Code: binary.NativeEndian.Uint16(b), JT: b[2], JF: b[3], K: binary.NativeEndian.Uint32(b[4:]),
		})
	}
	return list
}
