package spawn

import (
	"encoding/binary"
	"slices"

	"loam/abi/linux"
)

// Memory implements call.Memory with a buffer. It serves as the memory of a child process that has none yet. Its addresses
// start at memoryStart.
type Memory struct{ bytes []byte }

const memoryStart = 1 << 12

// Store adds bytes, and returns their address.
func (m *Memory) Store(b []byte) uint64 {
	at := uint64(memoryStart + len(m.bytes))
	m.bytes = append(append(m.bytes, b...), make([]byte, -len(b)&7)...)
	return at
}

// text adds a string.
func (m *Memory) text(s string) uint64 { return m.Store(append([]byte(s), 0)) }

// or sets bits of a stored word.
func (m *Memory) or(addr uint64, bits uint32) {
	b := m.bytes[addr-memoryStart:]
	binary.LittleEndian.PutUint32(b, binary.LittleEndian.Uint32(b)|bits)
}

// at returns n stored bytes, or nil.
func (m *Memory) at(addr uint64, n int) []byte {
	if addr < memoryStart || addr-memoryStart > uint64(len(m.bytes)) || n > len(m.bytes)-int(addr-memoryStart) {
		return nil
	}
	return m.bytes[addr-memoryStart:][:n]
}

// Read implements call.Memory.
func (m *Memory) Read(b []byte, addr uint64) linux.Errno {
	from := m.at(addr, len(b))
	if from == nil && len(b) > 0 {
		return linux.EFAULT
	}
	copy(b, from)
	return 0
}

// Write implements call.Memory.
func (m *Memory) Write(addr uint64, b []byte) linux.Errno {
	to := m.at(addr, len(b))
	if to == nil && len(b) > 0 {
		return linux.EFAULT
	}
	copy(to, b)
	return 0
}

// Pointer implements call.Memory.
func (m *Memory) Pointer(addr uint64) (uint64, linux.Errno) {
	b := m.at(addr, 8)
	if b == nil {
		return 0, linux.EFAULT
	}
	return binary.LittleEndian.Uint64(b), 0
}

// String implements call.Memory.
func (m *Memory) String(addr uint64, most int) (string, linux.Errno) {
	b := m.at(addr, 0)
	if b == nil {
		return "", linux.EFAULT
	}
	b = m.bytes[addr-memoryStart:]
	end := slices.Index(b, 0)
	if end < 0 || end >= most {
		return "", linux.ENAMETOOLONG
	}
	return string(b[:end]), 0
}

// Bytes implements call.Memory. It returns nil, so that all memory is copied.
func (*Memory) Bytes(uint64, int) ([]byte, linux.Errno) { return nil, 0 }

// Scratch implements call.Memory.
func (*Memory) Scratch() []byte                                   { return nil }
func (*Memory) Pin(uint64, int, bool) ([][]byte, func(lost bool)) { return nil, nil }
