package call

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/posix/file"
)

// steppedMemory is a flatMemory that is copied. It calls step before each large copy, and has a hole, a page without memory.
type steppedMemory struct {
	*flatMemory
	hole   uint64 // address of the hole; 0: none
	step   func(n int)
	steps  int
	ending bool
}

func (m *steppedMemory) Read(b []byte, addr uint64) linux.Errno {
	if errno := m.before(addr, len(b)); errno != 0 {
		return errno
	}
	return m.flatMemory.Read(b, addr)
}

func (m *steppedMemory) Write(addr uint64, b []byte) linux.Errno {
	if errno := m.before(addr, len(b)); errno != 0 {
		return errno
	}
	return m.flatMemory.Write(addr, b)
}

func (m *steppedMemory) before(addr uint64, n int) linux.Errno {
	if n >= 1<<20 && m.step != nil {
		m.steps++
		m.step(m.steps)
	}
	if m.hole != 0 && addr < m.hole+pageSize && m.hole < addr+uint64(n) {
		return linux.EFAULT
	}
	return 0
}

func (m *steppedMemory) Ending() bool { return m.ending }

const mega = 1 << 20

// newStepped returns a caller with size MiB of memory. The names of files are after them.
func newStepped(t *testing.T, size int) (Caller, *steppedMemory) {
	c, flat := newCaller(t, size*mega+64)
	flat.copies = true
	m := &steppedMemory{flatMemory: flat}
	c.Memory = m
	return c, m
}

// openNamed opens a file. The caller's memory has size MiB.
func openNamed(t *testing.T, c Caller, m *flatMemory, size int, name string, flags uint64) uint64 {
	t.Helper()
	copy(m.bytes[size*mega:], name+"\x00")
	return must(t)(do(c, linux.SYS_OPEN, uint64(base+size*mega), linux.O_RDWR|linux.O_CREAT|flags, 0o600))
}

// expect calls a system call and compares its result.
func expect(t *testing.T, c Caller, want int, wanted linux.Errno, number int, args ...uint64) {
	t.Helper()
	n, errno := do(c, number, args...)
	if errno != wanted || errno == 0 && int(n) != want {
		t.Errorf("%s%d: %d, %v, want %d, %v", ByNumber(number).Name, args, int(n), errno, want, wanted)
	}
}

// Large transfers of files end with the content of the file, whether the memory is copied or not.
func TestLargeTransfers(t *testing.T) {
	for _, copies := range []bool{false, true} {
		c, m := newCaller(t, 5*mega+64)
		m.copies = copies
		fd := openNamed(t, c, m, 5, "file", 0)
		const size = 5 * mega
		for i := range m.bytes[:size] {
			m.bytes[i] = byte(i * 7)
		}
		want := slices.Clone(m.bytes[:size])
		expect(t, c, size, 0, linux.SYS_WRITE, fd, base, size)
		expect(t, c, size, 0, linux.SYS_PWRITE64, fd, base, size, 1)
		clear(m.bytes[:size])
		expect(t, c, size-1, 0, linux.SYS_PREAD64, fd, base+1, size, 2)
		m.bytes[0] = 0
		expect(t, c, 1, 0, linux.SYS_READ, fd, base, size)
		expect(t, c, size, 0, linux.SYS_PREAD64, fd, base, size, 1)
		if !bytes.Equal(m.bytes[:size], want) {
			t.Error("other bytes are read")
		}
		if _, _, ok := c.large(Args{A1: fd, A2: base, A3: size}, 0, true); ok != copies {
			t.Errorf("a write from memory that is copied (%v) is made in parts: %v", copies, ok)
		}
	}
}

// A large transfer ends before a page without memory, and the offset is advanced by the bytes that were transferred.
func TestLargeTransfersWithHole(t *testing.T) {
	c, m := newStepped(t, 12)
	fd := openNamed(t, c, m.flatMemory, 12, "file", 0)
	expect(t, c, 12*mega, 0, linux.SYS_WRITE, fd, base, 12*mega)
	m.hole = base + 5*mega
	for _, number := range []int{linux.SYS_READ, linux.SYS_WRITE} {
		expect(t, c, 0, 0, linux.SYS_LSEEK, fd, 0, linux.SEEK_SET)
		expect(t, c, 5*mega, 0, number, fd, base, 9*mega)
		expect(t, c, 5*mega, 0, linux.SYS_LSEEK, fd, 0, linux.SEEK_CUR)
		expect(t, c, 2*pageSize+1, 0, number, fd, m.hole-2*pageSize-1, 6*mega)
		expect(t, c, 5*mega+2*pageSize+1, 0, linux.SYS_LSEEK, fd, 0, linux.SEEK_CUR)
		expect(t, c, 0, linux.EFAULT, number, fd, m.hole, 6*mega)
		expect(t, c, 5*mega+2*pageSize+1, 0, linux.SYS_LSEEK, fd, 0, linux.SEEK_CUR)
	}
	expect(t, c, 5*mega, 0, linux.SYS_PREAD64, fd, base, 9*mega, 100)
	expect(t, c, 5*mega-3, 0, linux.SYS_PWRITE64, fd, base+3, 9*mega, 100)
	expect(t, c, 12*mega, 0, linux.SYS_LSEEK, fd, 0, linux.SEEK_END)
	expect(t, c, 0, 0, linux.SYS_READ, fd, m.hole, 6*mega)
}

// The whole range is checked before the transfer, although a call transfers less than 2 GiB.
func TestLargeTransfersBeyondMemory(t *testing.T) {
	c, m := newStepped(t, 5)
	fd := openNamed(t, c, m.flatMemory, 5, "file", 0)
	expect(t, c, 5*mega, 0, linux.SYS_PWRITE64, fd, base, 5*mega)
	for _, n := range []uint64{1 << 47, 1 << 62, 1<<63 - 1, ^uint64(0)} {
		for _, number := range []int{linux.SYS_READ, linux.SYS_WRITE, linux.SYS_PREAD64, linux.SYS_PWRITE64} {
			expect(t, c, 0, linux.EFAULT, number, fd, base, n, 0)
		}
		expect(t, c, 0, linux.EFAULT, linux.SYS_PREAD64, fd, base, n, 1<<62)
		expect(t, c, 0, linux.EBADF, linux.SYS_READ, 99, base, n)
	}
	expect(t, c, 0, 0, linux.SYS_LSEEK, fd, 0, linux.SEEK_CUR)
	expect(t, c, 0, linux.EINVAL, linux.SYS_PREAD64, fd, base, 5*mega, 1<<63-1)
}

// A descriptor that is replaced during a large transfer does not change its file.
func TestLargeTransferKeepsFile(t *testing.T) {
	c, m := newStepped(t, 12)
	fd := openNamed(t, c, m.flatMemory, 12, "old", 0)
	old := openNamed(t, c, m.flatMemory, 12, "old", 0)
	other := openNamed(t, c, m.flatMemory, 12, "new", 0)
	m.step = func(n int) {
		if n == 2 {
			must(t)(do(c, linux.SYS_DUP2, other, fd))
		}
	}
	expect(t, c, 12*mega, 0, linux.SYS_WRITE, fd, base, 12*mega)
	expect(t, c, 12*mega, 0, linux.SYS_LSEEK, old, 0, linux.SEEK_END)
	expect(t, c, 0, 0, linux.SYS_LSEEK, other, 0, linux.SEEK_END)
}

// A large write at the offset of the file, and a large append, are one piece for other users of the same open file.
func TestLargeWritesAreOnePiece(t *testing.T) {
	for _, flags := range []uint64{0, linux.O_APPEND} {
		c, m := newStepped(t, 10)
		fd := openNamed(t, c, m.flatMemory, 10, "file", flags)
		small := Caller{Process: c.Process, Memory: &flatMemory{bytes: []byte("s")}}
		var end sync.WaitGroup
		m.step = func(n int) {
			if n == 2 {
				end.Go(func() { expect(t, small, 1, 0, linux.SYS_WRITE, fd, base, 1) })
				time.Sleep(10 * time.Millisecond) // without the lock, the small write is between the parts
			}
		}
		expect(t, c, 9*mega, 0, linux.SYS_WRITE, fd, base, 9*mega)
		end.Wait()
		expect(t, c, 9*mega+1, 0, linux.SYS_LSEEK, fd, 0, linux.SEEK_CUR)
		m.step = nil
		expect(t, c, 9*mega+1, 0, linux.SYS_PREAD64, fd, base, 10*mega, 0)
		if i := bytes.IndexByte(m.bytes, 's'); i != 9*mega {
			t.Errorf("flags %#x: the other write is at %d", flags, i)
		}
	}
}

// Between its parts, a large transfer of an endless device ends at a signal, and a transfer of a file at the end of the thread.
func TestSignalDuringLargeTransfer(t *testing.T) {
	for _, test := range []struct {
		name   string
		ending bool
		want   int
	}{{"file", false, 12}, {"file", true, 8}, {"/dev/zero", false, 8}, {"/dev/urandom", false, 8}} {
		c, flat := callerWithTerminals(t, 12*mega+64)
		flat.copies = true
		m := &steppedMemory{flatMemory: flat, ending: test.ending}
		interrupt := file.NewInterrupt()
		c = Caller{Process: c.Process.Task(interrupt), Memory: m}
		fd := openNamed(t, c, m.flatMemory, 12, test.name, 0)
		if test.name == "file" {
			expect(t, c, 12*mega, 0, linux.SYS_PWRITE64, fd, base, 12*mega)
		}
		m.steps, m.step = 0, func(n int) {
			if n == 2 {
				interrupt.Raise()
			}
		}
		expect(t, c, test.want*mega, 0, linux.SYS_READ, fd, base, 12*mega)
	}
}

// A large write ends at RLIMIT_FSIZE, and the next one returns EFBIG.
func TestLargeWriteWithLimit(t *testing.T) {
	for _, limit := range []int{4 * mega, 5*mega + 1} {
		c, m := newStepped(t, 9)
		fd := openNamed(t, c, m.flatMemory, 9, "file", 0)
		c.Process.SetLimits(1024, uint64(limit), 0)
		expect(t, c, limit, 0, linux.SYS_WRITE, fd, base, 9*mega)
		expect(t, c, limit, 0, linux.SYS_LSEEK, fd, 0, linux.SEEK_CUR)
		expect(t, c, 0, linux.EFBIG, linux.SYS_WRITE, fd, base, 9*mega)
		expect(t, c, limit-5, 0, linux.SYS_PWRITE64, fd, base, 9*mega, 5)
	}
}
