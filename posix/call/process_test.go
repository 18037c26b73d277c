package call

import (
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix"
	"loam/stack"
)

// recordedCall is a call that a process has made of the kernel below it.
type recordedCall struct {
	number int
	args   [6]uint64
}

// fakeKernel is a kernel below a process. It records the calls, and reserves the memory of mmap in a flatMemory.
type fakeKernel struct {
	calls  []recordedCall
	result uint64
	errno  linux.Errno
	limits [16]linux.Rlimit
	name   string
	named  []any // arguments of NameMemory
}

func (k *fakeKernel) Call(number int, a1, a2, a3, a4, a5, a6 uint64) (uint64, linux.Errno) {
	k.calls = append(k.calls, recordedCall{number, [6]uint64{a1, a2, a3, a4, a5, a6}})
	return k.result, k.errno
}

func (k *fakeKernel) Reserve(int64) (fs.Memory, error) { return nil, linux.ENOMEM }

func (k *fakeKernel) Limit(pid, resource int, set, get *linux.Rlimit) linux.Errno {
	switch {
	case pid != 0 && pid != 7:
		return linux.ESRCH
	case resource < 0 || resource >= len(k.limits):
		return linux.EINVAL
	}
	if get != nil {
		*get = k.limits[resource]
	}
	if set != nil {
		k.limits[resource] = *set
	}
	return 0
}

func (k *fakeKernel) NameThread(name string) linux.Errno {
	k.name = name
	return 0
}

func (k *fakeKernel) ThreadName() (string, linux.Errno) { return k.name, 0 }

func (k *fakeKernel) NameMemory(kind int, addr, length uint64, name string) linux.Errno {
	k.named = []any{kind, addr, length, name}
	return 0
}

func (k *fakeKernel) Names() linux.Utsname { return linux.Utsname{} }

// newKernelCaller returns a caller whose process has a kernel below it.
func newKernelCaller(t *testing.T, size int) (Caller, *flatMemory, *fakeKernel) {
	t.Helper()
	s := stack.New(stack.Config{Shards: 1})
	t.Cleanup(func() { s.Close() })
	k, m := &fakeKernel{}, &flatMemory{bytes: make([]byte, size)}
	p := posix.New(posix.Options{Network: s, Credentials: posix.Credentials{PID: 7}, Kernel: k})
	return Caller{Process: p, Memory: m}, m, k
}

// fails checks the error of a call.
func fails(t *testing.T, c Caller, want linux.Errno, number int, args ...uint64) {
	t.Helper()
	if _, errno := do(c, number, args...); errno != want {
		t.Errorf("call %d with %#x: %v, want %v", number, args, errno, want)
	}
}

// Signals are sent to the process itself. No other process exists.
func TestKill(t *testing.T) {
	c, _, k := newKernelCaller(t, 64)
	for _, pid := range []uint64{7, 0, minus, 1<<32 | 7} {
		fails(t, c, 0, linux.SYS_KILL, pid, 10)
		if got := k.calls[len(k.calls)-1]; got.number != linux.SYS_KILL || got.args[0] != 7 || got.args[1] != 10 {
			t.Errorf("kill of %d makes %+v", int64(pid), got)
		}
	}
	for _, pid := range []uint64{1, 8, minus - 1, 1 << 31} {
		fails(t, c, linux.ESRCH, linux.SYS_KILL, pid, 10)
	}
	fails(t, c, 0, linux.SYS_TGKILL, 7, 9, 10)
	fails(t, c, 0, linux.SYS_TKILL, 9, 10)
	for _, got := range k.calls[len(k.calls)-2:] {
		if got.number != linux.SYS_TGKILL || got.args != [6]uint64{7, 9, 10} {
			t.Errorf("tgkill makes %+v", got)
		}
	}
	fails(t, c, linux.EINVAL, linux.SYS_TGKILL, 0, 9, 10)
	fails(t, c, linux.EINVAL, linux.SYS_TGKILL, 7, 0, 10)
	fails(t, c, linux.EINVAL, linux.SYS_TGKILL, minus, 9, 10)
	fails(t, c, linux.EINVAL, linux.SYS_TKILL, minus, 10)
	fails(t, c, linux.ESRCH, linux.SYS_TGKILL, 8, 9, 10)
}

// The three calls on limits read and write a struct rlimit. A call that fails sets no limit.
func TestLimitCalls(t *testing.T) {
	c, m, k := newKernelCaller(t, 64)
	k.limits[7] = linux.Rlimit{Cur: 100, Max: 200}
	fails(t, c, 0, linux.SYS_GETRLIMIT, 7, base)
	if soft, hard := le.Uint64(m.bytes), le.Uint64(m.bytes[8:]); soft != 100 || hard != 200 {
		t.Errorf("limits %d and %d", soft, hard)
	}
	le.PutUint64(m.bytes[16:], 50)
	le.PutUint64(m.bytes[24:], 60)
	fails(t, c, 0, linux.SYS_PRLIMIT64, 0, 7, base+16, base+32)
	if soft := le.Uint64(m.bytes[32:]); soft != 100 || k.limits[7] != (linux.Rlimit{Cur: 50, Max: 60}) {
		t.Errorf("prlimit returns %d and sets %+v", soft, k.limits[7])
	}
	fails(t, c, 0, linux.SYS_SETRLIMIT, 4, base+16)
	if k.limits[4] != k.limits[7] {
		t.Errorf("setrlimit sets %+v", k.limits[4])
	}
	fails(t, c, 0, linux.SYS_PRLIMIT64, 7, 4, 0, 0)
	fails(t, c, linux.ESRCH, linux.SYS_PRLIMIT64, 99, 4, 0, 0)
	fails(t, c, linux.EINVAL, linux.SYS_GETRLIMIT, 16, base)
	fails(t, c, linux.EFAULT, linux.SYS_GETRLIMIT, 4, 0)
	fails(t, c, linux.EFAULT, linux.SYS_SETRLIMIT, 4, 0)
	fails(t, c, linux.EFAULT, linux.SYS_SETRLIMIT, 4, noAddress)
	fails(t, c, linux.EFAULT, linux.SYS_PRLIMIT64, 0, 4, 0, noAddress)
}

// A thread's name is cut off after 15 bytes, and read into a buffer of 16.
func TestThreadNames(t *testing.T) {
	c, m, k := newKernelCaller(t, 128)
	for name, want := range map[string]string{"": "", "short": "short", "exactly fifteen": "exactly fifteen", strings.Repeat("x", 40): strings.Repeat("x", 15)} {
		copy(m.bytes, name+"\x00")
		fails(t, c, 0, linux.SYS_PRCTL, linux.PR_SET_NAME, base)
		if k.name != want {
			t.Errorf("%q sets %q", name, k.name)
		}
		copy(m.bytes[64:], strings.Repeat("?", 20))
		fails(t, c, 0, linux.SYS_PRCTL, linux.PR_GET_NAME, base+64)
		if got := string(m.bytes[64:84]); got != want+strings.Repeat("\x00", 16-len(want))+"????" {
			t.Errorf("%q is returned as %q", name, got)
		}
	}
	fails(t, c, linux.EFAULT, linux.SYS_PRCTL, linux.PR_SET_NAME, noAddress)
	fails(t, c, linux.EFAULT, linux.SYS_PRCTL, linux.PR_GET_NAME, noAddress)
}

// Mappings get names of up to 79 bytes, and lose them by the address 0.
func TestMemoryNames(t *testing.T) {
	c, m, k := newKernelCaller(t, 256)
	copy(m.bytes, strings.Repeat("n", 79)+"\x00")
	fails(t, c, 0, linux.SYS_PRCTL, linux.PR_SET_VMA, 0, 0x1000, 0x2000, base)
	if k.named[1] != uint64(0x1000) || k.named[2] != uint64(0x2000) || k.named[3] != strings.Repeat("n", 79) {
		t.Errorf("named %v", k.named)
	}
	fails(t, c, 0, linux.SYS_PRCTL, linux.PR_SET_VMA, 0, 0x1000, 0x2000, 0)
	if k.named[3] != "" {
		t.Errorf("named %v", k.named)
	}
	copy(m.bytes, strings.Repeat("n", 80)+"\x00")
	fails(t, c, linux.EINVAL, linux.SYS_PRCTL, linux.PR_SET_VMA, 0, 0x1000, 0x2000, base)
	fails(t, c, linux.EFAULT, linux.SYS_PRCTL, linux.PR_SET_VMA, 0, 0x1000, 0x2000, noAddress)
}

// A caller that passes another version of the structure learns the version that is supported.
func TestCapabilityVersions(t *testing.T) {
	c, m, _ := newKernelCaller(t, 64)
	header := func(version uint32, pid int32) {
		le.PutUint32(m.bytes, version)
		le.PutUint32(m.bytes[4:], uint32(pid))
	}
	for _, call := range []int{linux.SYS_CAPGET, linux.SYS_CAPSET} {
		header(0x1998_0330, 0)
		fails(t, c, linux.EINVAL, call, base, base+16)
		if got := le.Uint32(m.bytes); got != linux.CAPABILITY_VERSION_3 {
			t.Errorf("version %#x", got)
		}
		fails(t, c, linux.EFAULT, call, noAddress, base+16)
		fails(t, c, linux.EFAULT, call, base, noAddress)
	}
	header(1, 0)
	fails(t, c, 0, linux.SYS_CAPGET, base, 0)
	header(linux.CAPABILITY_VERSION_3, 7)
	fails(t, c, 0, linux.SYS_CAPGET, base, base+16)
	fails(t, c, 0, linux.SYS_CAPSET, base, base+16)
	header(linux.CAPABILITY_VERSION_3, 99)
	fails(t, c, linux.ESRCH, linux.SYS_CAPGET, base, base+16)
	fails(t, c, linux.EPERM, linux.SYS_CAPSET, base, base+16)
	header(linux.CAPABILITY_VERSION_3, -1)
	fails(t, c, linux.EINVAL, linux.SYS_CAPGET, base, base+16)
}

// A private mapping of a file is memory with a copy of its content. If the copy fails, the memory is unmapped again.
func TestPrivateMapping(t *testing.T) {
	c, m, k := newKernelCaller(t, 4*pageSize)
	copy(m.bytes, "file\x00")
	fd := must(t)(do(c, linux.SYS_OPEN, base, linux.O_RDWR|linux.O_CREAT, 0o600))
	copy(m.bytes, strings.Repeat("content ", 1000))
	must(t)(do(c, linux.SYS_WRITE, fd, base, 5000))
	clear(m.bytes)
	k.result = base + pageSize
	const read = linux.PROT_READ
	at := must(t)(do(c, linux.SYS_MMAP, 0, 2*pageSize, read, linux.MAP_PRIVATE, fd, pageSize))
	if at != base+pageSize {
		t.Errorf("mapped at %#x", at)
	}
	if got := string(m.bytes[pageSize:][:5000-pageSize]); got != strings.Repeat("content ", 1000)[pageSize:5000] {
		t.Errorf("content %.20q", got)
	}
	if k.calls[0].number != linux.SYS_MMAP || k.calls[0].args[2] != linux.PROT_READ|linux.PROT_WRITE || k.calls[0].args[3] != linux.MAP_PRIVATE|linux.MAP_ANONYMOUS {
		t.Errorf("the memory is mapped by %+v", k.calls[0])
	}
	if last := k.calls[len(k.calls)-1]; last.number != linux.SYS_MPROTECT || last.args[2] != read {
		t.Errorf("the rights are set by %+v", last)
	}
	k.result = base + 3*pageSize // the second page does not exist
	fails(t, c, linux.EFAULT, linux.SYS_MMAP, 0, 2*pageSize, read, linux.MAP_PRIVATE, fd, 0)
	if last := k.calls[len(k.calls)-1]; last.number != linux.SYS_MUNMAP {
		t.Errorf("after a failed copy: %+v", last)
	}
	fails(t, c, linux.EINVAL, linux.SYS_MMAP, 0, pageSize, read, linux.MAP_PRIVATE, fd, 100)
	fails(t, c, linux.EBADF, linux.SYS_MMAP, 0, pageSize, read, linux.MAP_PRIVATE, 99, 0)
	k.errno = linux.ENOMEM
	fails(t, c, linux.ENOMEM, linux.SYS_MMAP, 0, pageSize, read, linux.MAP_PRIVATE, fd, 0)
	fails(t, c, linux.ENOMEM, linux.SYS_MMAP, 0, pageSize, read, linux.MAP_PRIVATE|linux.MAP_ANONYMOUS, minus, 0)
}

// A process without a kernel below it has no memory of its own, and no limits.
func TestWithoutKernel(t *testing.T) {
	c, _ := newCaller(t, 64)
	fails(t, c, linux.ENOSYS, linux.SYS_MMAP, 0, 4096, 3, linux.MAP_PRIVATE|linux.MAP_ANONYMOUS, minus, 0)
	fails(t, c, linux.ENOSYS, linux.SYS_KILL, 7, 0)
	fails(t, c, linux.ENOSYS, linux.SYS_GETRLIMIT, 7, base)
	fails(t, c, linux.ENOSYS, linux.SYS_SETPRIORITY, 0, 0, 0)
	fails(t, c, linux.ENOSYS, linux.SYS_SETPGID, 0, 0)
}

// munmap, mprotect, madvise and mremap are made of the kernel below the process, except for shared mappings of files.
func TestMappingsOfOtherMemory(t *testing.T) {
	c, _, k := newKernelCaller(t, pageSize)
	for _, number := range []int{linux.SYS_MUNMAP, linux.SYS_MPROTECT, linux.SYS_MADVISE} {
		fails(t, c, 0, number, base, pageSize, 4)
		if got := k.calls[len(k.calls)-1]; got.number != number || got.args != [6]uint64{base, pageSize, 4} {
			t.Errorf("call %d makes %+v", number, got)
		}
	}
	k.result = base + pageSize
	if to := must(t)(do(c, linux.SYS_MREMAP, base, pageSize, 2*pageSize, 1<<32|1, 7)); to != base+pageSize {
		t.Errorf("mremap returns %#x", to)
	}
	if got := k.calls[len(k.calls)-1]; got.number != linux.SYS_MREMAP || got.args != [6]uint64{base, pageSize, 2 * pageSize, 1, 7} {
		t.Errorf("mremap makes %+v", got)
	}
	k.errno = linux.ENOMEM
	fails(t, c, linux.ENOMEM, linux.SYS_MREMAP, base, pageSize, 2*pageSize, 0)
}

// A file without shared mappings cannot be mapped at a fixed address, nor without a kernel that reserves memory.
func TestSharedMappingErrors(t *testing.T) {
	c, m, _ := newKernelCaller(t, 64)
	copy(m.bytes, "file\x00")
	fd := must(t)(do(c, linux.SYS_OPEN, base, linux.O_RDWR|linux.O_CREAT, 0o600))
	only := must(t)(do(c, linux.SYS_OPEN, base, linux.O_RDONLY))
	const rights = linux.PROT_READ | linux.PROT_WRITE
	fails(t, c, linux.ENODEV, linux.SYS_MMAP, base, pageSize, rights, linux.MAP_SHARED|linux.MAP_FIXED, fd, 0)
	fails(t, c, linux.EACCES, linux.SYS_MMAP, 0, pageSize, rights, linux.MAP_SHARED, only, 0)
	fails(t, c, linux.EINVAL, linux.SYS_MMAP, 0, pageSize, rights, linux.MAP_SHARED, fd, 1)
	fails(t, c, linux.ENOMEM, linux.SYS_MMAP, 0, pageSize, rights, linux.MAP_SHARED, fd, 0) // the kernel of the test reserves nothing
}
