package task

import (
	"bytes"
	"encoding/binary"

	"loam/abi/linux"
	"loam/mem"
)

// memory is the memory of a task's process as the calls of package posix see it (call.Memory). An access makes
// missing pages present, and returns EFAULT if the process may not access an address.
type memory struct{ t *Task }

// Read implements call.Memory.
func (m memory) Read(b []byte, addr uint64) linux.Errno {
	s := m.t.memory()
	for done := 0; ; {
		done += s.Read(addr+uint64(done), b[done:])
		if done == len(b) {
			return 0
		}
		if !m.present(addr+uint64(done), mem.Load) {
			return linux.EFAULT
		}
	}
}

// Write implements call.Memory.
func (m memory) Write(addr uint64, b []byte) linux.Errno {
	s := m.t.memory()
	for done := 0; ; {
		done += s.Write(addr+uint64(done), b[done:])
		if done == len(b) {
			return 0
		}
		if !m.present(addr+uint64(done), mem.Store) {
			return linux.EFAULT
		}
	}
}

// present makes the page at an address present for an access, as a page fault would, and reports whether it succeeded.
func (m memory) present(addr uint64, access mem.Access) bool {
	for tries := 0; tries < 100; tries++ {
		switch m.t.memory().Fault(addr, access).Result {
		case mem.Mapped:
			return true
		case mem.NoMemory:
			m.t.process.system.guard.Exhausted(m.t.process.kill) // locks may be held, so the number of tries has a limit
		default:
			return false
		}
	}
	return false
}

// Pointer implements call.Memory.
func (m memory) Pointer(addr uint64) (uint64, linux.Errno) {
	b := m.t.word[:] // a local array would be allocated
	errno := m.Read(b, addr)
	return binary.LittleEndian.Uint64(b), errno
}

// String implements call.Memory.
func (m memory) String(addr uint64, most int) (string, linux.Errno) {
	var text []byte // the part of the string that does not fit the buffer
	for n := 0; n < most; {
		at := addr + uint64(n)
		piece := m.t.text[:min(most-n, len(m.t.text), int(mem.PageSize-at%mem.PageSize))]
		if errno := m.Read(piece, at); errno != 0 {
			return "", errno
		}
		end := bytes.IndexByte(piece, 0)
		switch {
		case end >= 0 && text == nil:
			return string(piece[:end]), 0
		case end >= 0:
			return string(append(text, piece[:end]...)), 0
		}
		text = append(text, piece...)
		n += len(piece)
	}
	return "", linux.ENAMETOOLONG
}

// Bytes implements call.Memory. Memory of a process is always copied.
func (m memory) Bytes(addr uint64, n int) ([]byte, linux.Errno) {
	if addr >= mem.End || uint64(n) > mem.End-addr {
		return nil, linux.EFAULT
	}
	return nil, 0
}

// Pin implements call.Memory.
func (m memory) Pin(addr uint64, n int, store bool) ([][]byte, func(lost bool)) {
	return m.t.memory().Pin(addr, n, store)
}

// Scratch implements call.Memory.
func (m memory) Scratch() []byte { return m.t.scratch[:] }

// Ending implements call.Ending.
func (m memory) Ending() bool { return m.t.ends() }

// setWord stores a word of 32 bits in the memory of the process.
func (m memory) setWord(addr uint64, v uint32) linux.Errno {
	b := m.t.word[:4]
	binary.LittleEndian.PutUint32(b, v)
	return m.Write(addr, b)
}

// load reads a word of 32 bits. Words of futexes are aligned. Unlike the other methods, it may be called by any goroutine.
func (m memory) load(addr uint64) (value uint32, errno linux.Errno) {
	if addr%4 != 0 {
		return 0, linux.EFAULT
	}
	for {
		if value, ok := m.t.memory().Load(addr); ok {
			return value, 0
		}
		if !m.present(addr, mem.Load) {
			return 0, linux.EFAULT
		}
	}
}

// swap replaces a word in the memory of the process if it has an expected value (the
// parameter old), and returns the value found. Words of futexes are aligned.
func (m memory) swap(addr uint64, old, value uint32) (found uint32, errno linux.Errno) {
	if addr%4 != 0 {
		return 0, linux.EFAULT
	}
	for {
		if found, ok := m.t.memory().CompareAndSwap(addr, old, value); ok {
			return found, 0
		}
		if !m.present(addr, mem.Store) {
			return 0, linux.EFAULT
		}
	}
}
