package call

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/fs/pseudo"
	"loam/internal/race"
	"loam/posix"
	"loam/posix/file"
	"loam/stack"
)

// flatMemory is a Memory of one range of bytes that starts at base.
type flatMemory struct {
	bytes   []byte
	copies  bool   // Bytes returns nil, so that callers must copy
	scratch []byte // result of Scratch
}

// base is the address of the first byte of a flatMemory.
const base = 0x10000

// piece returns the n bytes at addr, or false if they are not all in the range.
func (m *flatMemory) piece(addr, n uint64) ([]byte, bool) {
	size := uint64(len(m.bytes))
	if addr < base || addr-base > size || n > size-(addr-base) {
		return nil, false
	}
	return m.bytes[addr-base:][:n], true
}

func (m *flatMemory) Read(b []byte, addr uint64) linux.Errno {
	p, ok := m.piece(addr, uint64(len(b)))
	if !ok && len(b) > 0 {
		return linux.EFAULT
	}
	copy(b, p)
	return 0
}

func (m *flatMemory) Write(addr uint64, b []byte) linux.Errno {
	p, ok := m.piece(addr, uint64(len(b)))
	if !ok && len(b) > 0 {
		return linux.EFAULT
	}
	copy(p, b)
	return 0
}

func (m *flatMemory) Pointer(addr uint64) (uint64, linux.Errno) {
	p, ok := m.piece(addr, 8)
	if !ok {
		return 0, linux.EFAULT
	}
	return le.Uint64(p), 0
}

func (m *flatMemory) String(addr uint64, most int) (string, linux.Errno) {
	for n := range most {
		p, ok := m.piece(addr, uint64(n)+1)
		if !ok {
			return "", linux.EFAULT
		}
		if p[n] == 0 {
			return string(p[:n]), 0
		}
	}
	return "", linux.ENAMETOOLONG
}

func (m *flatMemory) Scratch() []byte { return m.scratch }

func (m *flatMemory) Pin(uint64, int, bool) ([][]byte, func(bool)) { return nil, nil }

func (m *flatMemory) Bytes(addr uint64, n int) ([]byte, linux.Errno) {
	p, ok := m.piece(addr, uint64(n))
	switch {
	case m.copies && addr < 1<<47 && uint64(n) <= 1<<47-addr: // above, there is no memory of a program
		return nil, 0
	case !ok:
		return nil, linux.EFAULT
	}
	return p, 0
}

// newCaller returns a caller whose process has a loopback interface, and size bytes of memory.
func newCaller(t testing.TB, size int) (Caller, *flatMemory) {
	s := stack.New(stack.Config{Shards: 1})
	t.Cleanup(func() { s.Close() })
	m := &flatMemory{bytes: make([]byte, size)}
	return Caller{Process: posix.New(posix.Options{Network: s, Credentials: posix.Credentials{PID: 7}}), Memory: m}, m
}

// do makes a call by its number.
func do(c Caller, number int, args ...uint64) (uint64, linux.Errno) {
	args = append(args, make([]uint64, 6)...)
	r := ByNumber(number)
	if r == nil || r.Serve == nil {
		return 0, linux.ENOSYS
	}
	return r.Serve(c, Args{args[0], args[1], args[2], args[3], args[4], args[5]})
}

// must fails the test if errno is not 0.
func must(t testing.TB) func(uint64, linux.Errno) uint64 {
	return func(n uint64, errno linux.Errno) uint64 {
		t.Helper()
		if errno != 0 {
			t.Fatal(errno)
		}
		return n
	}
}

// accept leaves no descriptor open if the address cannot be written (accept(2): EFAULT).
func TestAcceptLeavesNothing(t *testing.T) {
	c, m := newCaller(t, 256)
	name := []byte{linux.AF_UNIX, 0, 0, 'x'} // an abstract name
	copy(m.bytes, name)
	l := must(t)(do(c, linux.SYS_SOCKET, linux.AF_UNIX, linux.SOCK_STREAM))
	must(t)(do(c, linux.SYS_BIND, l, base, uint64(len(name))))
	must(t)(do(c, linux.SYS_LISTEN, l, 5))
	client := must(t)(do(c, linux.SYS_SOCKET, linux.AF_UNIX, linux.SOCK_STREAM))
	must(t)(do(c, linux.SYS_CONNECT, client, base, uint64(len(name))))
	before := len(c.Process.Descriptors())
	if _, errno := do(c, linux.SYS_ACCEPT, l, base, 5); errno != linux.EFAULT {
		t.Errorf("errno %v, want EFAULT", errno)
	}
	if after := len(c.Process.Descriptors()); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// pipe and socketpair leave no descriptors open if the numbers cannot be written.
func TestPairsLeaveNothing(t *testing.T) {
	c, _ := newCaller(t, 64)
	for _, try := range [][]uint64{
		{linux.SYS_PIPE, 5}, {linux.SYS_PIPE2, base + 60, 0}, {linux.SYS_SOCKETPAIR, linux.AF_UNIX, linux.SOCK_STREAM, 0, 5},
	} {
		if _, errno := do(c, int(try[0]), try[1:]...); errno != linux.EFAULT {
			t.Errorf("call %d: %v, want EFAULT", try[0], errno)
		}
	}
	if left := c.Process.Descriptors(); len(left) != 0 {
		t.Errorf("descriptors %v are left", left)
	}
}

// socketpair of a family without pairs creates no descriptor, not even for a moment: another thread could replace it.
func TestNoPairOfFamily(t *testing.T) {
	c, _ := newCaller(t, 64)
	var done atomic.Bool
	seen := make(chan int)
	go func() {
		n := 0
		for !done.Load() {
			n = max(n, len(c.Process.Descriptors()))
		}
		seen <- n
	}()
	for range 5000 {
		if _, errno := do(c, linux.SYS_SOCKETPAIR, linux.AF_NETLINK, linux.SOCK_RAW, linux.NETLINK_ROUTE, base); errno != linux.EOPNOTSUPP {
			t.Fatalf("errno %v, want EOPNOTSUPP", errno)
		}
	}
	done.Store(true)
	if n := <-seen; n != 0 {
		t.Errorf("%d descriptors seen", n)
	}
}

// socketpair checks its flags first, then the room for its descriptors, its address, and the family, the type and the protocol.
func TestSocketPairErrors(t *testing.T) {
	c, _ := newCaller(t, 64)
	const unknown, bad = 99, 5
	try := func(family, typ, addr uint64, want linux.Errno) {
		t.Helper()
		if _, errno := do(c, linux.SYS_SOCKETPAIR, family, typ, 0, addr); errno != want {
			t.Errorf("family %d, type %#x, address %#x: %v, want %v", family, typ, addr, errno, want)
		}
	}
	try(unknown, 1<<9, bad, linux.EINVAL)
	try(unknown, linux.SOCK_STREAM, bad, linux.EFAULT)
	try(unknown, linux.SOCK_STREAM, base, linux.EAFNOSUPPORT)
	try(linux.AF_NETLINK, linux.SOCK_RAW, bad, linux.EFAULT)
	try(linux.AF_NETLINK, linux.SOCK_STREAM, base, linux.ESOCKTNOSUPPORT)
	try(linux.AF_UNIX, 9, bad, linux.EFAULT)
	try(linux.AF_UNIX, 9, base, linux.ESOCKTNOSUPPORT)
	c.Process.OpenMax.Set(0)
	try(unknown, linux.SOCK_STREAM, bad, linux.EMFILE)
	try(linux.AF_UNIX, 9, bad, linux.EMFILE)
	try(linux.AF_UNIX, linux.SOCK_STREAM, base, linux.EMFILE)
}

// select(2) returns EINVAL for a negative number of descriptors, and EBADF for a descriptor that is not open.
func TestSelectErrors(t *testing.T) {
	c, m := newCaller(t, 64)
	m.bytes[0] = 1 << 3
	for _, try := range []struct {
		n, set uint64
		want   linux.Errno
	}{
		{^uint64(0), 0, linux.EINVAL}, {1 << 31, 0, linux.EINVAL}, {4, base, linux.EBADF}, {4, 5, linux.EFAULT}, {1 << 30, base, linux.EFAULT}, {3, base, 0},
	} {
		_, errno := do(c, linux.SYS_SELECT, try.n, try.set, 0, 0, base+32)
		if errno != try.want {
			t.Errorf("select of %#x: %v, want %v", try.n, errno, try.want)
		}
	}
}

// readOnly is a Memory that cannot be written.
type readOnly struct{ *flatMemory }

func (readOnly) Write(_ uint64, b []byte) linux.Errno {
	if len(b) == 0 {
		return 0
	}
	return linux.EFAULT
}

// recvmmsg for no messages does not write its timeout.
func TestNoMessages(t *testing.T) {
	c, m := newCaller(t, 256)
	s := must(t)(do(c, linux.SYS_SOCKET, linux.AF_INET, linux.SOCK_DGRAM))
	linux.Timespec{Sec: 1 << 40}.Put(m.bytes)
	before := bytes.Clone(m.bytes)
	fails(t, c, 0, linux.SYS_RECVMMSG, s, base+64, 0, 0, base)
	if !bytes.Equal(m.bytes, before) {
		t.Error("the timeout is written")
	}
	c.Memory = readOnly{m}
	fails(t, c, 0, linux.SYS_RECVMMSG, s, base+64, 0, 0, base)
}

// select, pselect6 and ppoll write the remaining time to the timeout. A timeout that cannot be written is no error.
func TestTimeLeft(t *testing.T) {
	c, m := newCaller(t, 256)
	must(t)(do(c, linux.SYS_PIPE, base))
	r, w := uint64(le.Uint32(m.bytes)), uint64(le.Uint32(m.bytes[4:]))
	must(t)(do(c, linux.SYS_WRITE, w, base, 1))
	const set, fds, timeout = 16, 32, 64
	left := func() [2]uint64 { return [2]uint64{le.Uint64(m.bytes[timeout:]), le.Uint64(m.bytes[timeout+8:])} }
	for _, number := range []int{linux.SYS_SELECT, linux.SYS_PSELECT6, linux.SYS_PPOLL} {
		try := func(files, sec, fraction uint64) (uint64, linux.Errno) {
			le.PutUint64(m.bytes[set:], 1<<r)
			linux.PollFD{FD: int32(r), Events: uint16(posix.PollIn)}.Put(m.bytes[fds:])
			le.PutUint64(m.bytes[timeout:], sec)
			le.PutUint64(m.bytes[timeout+8:], fraction)
			if number == linux.SYS_PPOLL {
				return do(c, number, base+fds, files, base+timeout)
			}
			return do(c, number, files*(r+1), base+set, 0, 0, base+timeout)
		}
		if n := must(t)(try(1, 3600, 0)); n != 1 || left()[0] != 3599 {
			t.Errorf("call %d: %d files are ready, and %d s are left of an hour", number, n, left()[0])
		}
		if n := must(t)(try(0, 0, 1000)); n != 0 || left() != [2]uint64{} {
			t.Errorf("call %d: %d files are ready, and %d is left after a timeout", number, n, left())
		}
		c.Memory = readOnly{m}
		if n, errno := try(0, 0, 1000); n != 0 || errno != 0 {
			t.Errorf("call %d with a timeout that cannot be written: %d, %v", number, n, errno)
		}
		c.Memory = m
	}
}

// A vector is read and written piece by piece, whether its memory is copied or not.
func TestVectors(t *testing.T) {
	for _, scratch := range [][]byte{nil, {}, make([]byte, Small)} {
		c, m := newCaller(t, 512)
		m.copies = scratch != nil
		if len(scratch) > 0 {
			m.scratch = scratch
		}
		must(t)(do(c, linux.SYS_PIPE, base))
		r, w := uint64(le.Uint32(m.bytes)), uint64(le.Uint32(m.bytes[4:]))
		copy(m.bytes[100:], "one two")
		pieces := func(list ...uint64) {
			for i, v := range list {
				le.PutUint64(m.bytes[16+8*i:], v)
			}
		}
		pieces(base+100, 4, 5, 0, base+104, 3)
		if n := must(t)(do(c, linux.SYS_WRITEV, w, base+16, 3)); n != 7 {
			t.Errorf("writev wrote %d bytes", n)
		}
		pieces(base+200, 2, base+300, 100)
		if n := must(t)(do(c, linux.SYS_READV, r, base+16, 2)); n != 7 || !bytes.Equal(m.bytes[200:202], []byte("on")) || string(m.bytes[300:305]) != "e two" {
			t.Errorf("readv read %d bytes: %q %q", n, m.bytes[200:202], m.bytes[300:305])
		}
	}
}

// A write to /dev/null does not access the memory, as on Linux: an address that is not mapped is no error. A write to
// /dev/urandom does.
func TestDiscard(t *testing.T) {
	c, m := newCaller(t, 64)
	m.copies = true
	v := c.Process.View()
	if err := v.Mkdir(v.Root, "/dev", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := pseudo.Devices(v); err != nil {
		t.Fatal(err)
	}
	const bad = base + 1<<20
	for name, want := range map[string]linux.Errno{"/dev/null": 0, "/dev/zero": 0, "/dev/urandom": linux.EFAULT, "/dev/full": linux.EFAULT} {
		copy(m.bytes, name+"\x00")
		fd := must(t)(do(c, linux.SYS_OPEN, base, linux.O_RDWR))
		n, errno := do(c, linux.SYS_WRITE, fd, bad, 5)
		if errno != want || errno == 0 && n != 5 {
			t.Errorf("%s: %d, %v, want %v", name, n, errno, want)
		}
	}
	if _, errno := do(c, linux.SYS_WRITE, 99, bad, 5); errno != linux.EBADF {
		t.Errorf("no descriptor: %v", errno)
	}
}

// FuzzCalls makes calls with random arguments and memory. No call may panic, every opened descriptor can be closed, and no
// goroutine is left. A wait ends at once, as if a signal were always pending.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 2, 3, 4, 5, 6}, []byte("/file\x00"))
	f.Add([]byte{22, 0x80, 0, 0, 0, 0, 0, 1, 3, 0x80, 9, 0, 0, 0}, []byte{1, 2, 3})
	f.Add([]byte{41, 2, 1, 0, 0, 0, 0, 50, 0, 5, 0, 0, 0, 0}, []byte{2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, program, memory []byte) {
		before := runtime.NumGoroutine()
		network := stack.New(stack.Config{Shards: 1})
		m := &flatMemory{bytes: make([]byte, 1<<16)}
		process := posix.New(posix.Options{Network: network, Credentials: posix.Credentials{PID: 7}})
		signal := file.NewInterrupt()
		c := Caller{Process: process.Task(signal), Memory: m}
		copy(m.bytes, memory)
		for ; len(program) >= 7; program = program[7:] {
			number := int(program[0]) + int(program[1]&0x40)*4
			var args [6]uint64
			for i := range args {
				args[i] = argument(program[1+i])
			}
			signal.Raise()
			do(c, number, args[:]...)
		}
		for _, fd := range c.Process.Descriptors() {
			if errno := c.Process.Close(fd); errno != 0 {
				t.Errorf("close of %d: %v", fd, errno)
			}
		}
		c.Process.Exit(0)
		network.Close()
		if left := leftGoroutines(before); left != "" {
			t.Errorf("goroutines are left:\n%s", left)
		}
	})
}

// leftGoroutines returns the stacks of all goroutines if more than before are left after a while.
func leftGoroutines(before int) string {
	const tries = 2000
	for range tries {
		if runtime.NumGoroutine() <= before {
			return ""
		}
		time.Sleep(time.Millisecond)
	}
	stacks := make([]byte, 1<<16)
	return string(stacks[:runtime.Stack(stacks, true)])
}

// argument converts a byte to an argument: a small number, an address, or a limit.
func argument(b byte) uint64 {
	switch {
	case b < 0x80:
		return uint64(b)
	case b < 0xf0:
		return base + uint64(b-0x80)*600
	}
	return [...]uint64{
		^uint64(0), 1 << 63, 1<<63 - 1, 1 << 31, 1<<31 - 1, 1 << 32, ^uint64(99), 0, 1 << 12, 1 << 20, 1 << 40, 1 << 62, base - 1, base + 1<<16, base + 1<<16 - 1, 0xdead000,
	}[b&15]
}

// BenchmarkTable reads a byte of a file through the table. BenchmarkRead bypasses the table, as
// unikernel/rt/transfer.go does.
func BenchmarkTable(b *testing.B) {
	c, fd := benchmarkFile(b)
	serve := ByNumber(linux.SYS_PREAD64).Serve
	for b.Loop() {
		serve(c, Args{A1: fd, A2: base, A3: 1})
	}
}

func BenchmarkRead(b *testing.B) {
	c, fd := benchmarkFile(b)
	m := make([]byte, 1)
	for b.Loop() {
		c.Process.Opened(int(fd)).ReadAt(m, 0)
	}
}

func benchmarkFile(b *testing.B) (Caller, uint64) {
	c, m := newCaller(b, 64)
	copy(m.bytes, "/file\x00x")
	fd := must(b)(do(c, linux.SYS_OPEN, base, linux.O_RDWR|linux.O_CREAT, 0o600))
	must(b)(do(c, linux.SYS_WRITE, fd, base, 8))
	return c, fd
}

// epoll_wait(2) allocates no buffer for events, however many the program asks for. One small allocation of the epoll
// instance is left.
func TestEpollWaitAllocates(t *testing.T) {
	c, m := newCaller(t, 64<<10)
	ready := must(t)(do(c, linux.SYS_EVENTFD2, 1, 0))
	set := must(t)(do(c, linux.SYS_EPOLL_CREATE1, 0))
	linux.EpollEvent{Events: linux.POLLIN}.Put(m.bytes)
	must(t)(do(c, linux.SYS_EPOLL_CTL, set, linux.EPOLL_CTL_ADD, ready, base))
	m.copies = true
	row := ByNumber(linux.SYS_EPOLL_WAIT)
	n := testing.AllocsPerRun(100, func() {
		if got, errno := row.Serve(c, Args{A1: set, A2: base, A3: 5000, A4: 0}); got != 1 || errno != 0 {
			t.Fatal(got, errno)
		}
	})
	if n > 1 && !race.Enabled {
		t.Errorf("%v allocations", n)
	}
}
