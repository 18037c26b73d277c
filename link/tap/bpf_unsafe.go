//go:build linux

package tap

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// The part of bpf(2) that the program of stray.go needs. Package ebpf of Cilium offers more, but this package
// is linked into guests, which import only the standard library and Loam.
//
// Safety, for every use of unsafe here: the kernel accesses the variables behind pointers only during the call,
// and they are pinned meanwhile. Pointers into a mapping lie inside it and are aligned. stray.go says when the
// mapping is removed.

// Commands and constants of linux/bpf.h.
const (
	bpfMapCreate     = 0
	bpfProgLoad      = 5
	mapTypeArray     = 2
	mapMmapable      = 1 << 10
	progSocketFilter = 1
)

// tunSetFilterEBPF is the ioctl TUNSETFILTEREBPF of linux/if_tun.h.
const tunSetFilterEBPF = 0x800454e1

// mapAttr and programAttr are the beginnings of union bpf_attr for their commands. The kernel takes the rest
// as zeros.
type mapAttr struct {
	kind, keySize, valueSize, entries, flags uint32
}

type programAttr struct {
	kind, count   uint32
	code, license uint64
	logLevel      uint32
	logSize       uint32
	log           uint64
	version       uint32
	flags         uint32
}

func bpf(command int, attr unsafe.Pointer, size uintptr) (fd int, err error) {
	r, _, errno := syscall.Syscall(sysBPF, uintptr(command), uintptr(attr), size)
	if errno != 0 {
		return -1, os.NewSyscallError("bpf", errno)
	}
	return int(r), nil
}

// loadProgram loads a program and returns its descriptor.
func loadProgram(kind uint32, code []instruction) (fd int, err error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	license := []byte("BSD\x00")
	pin.Pin(&code[0])
	pin.Pin(&license[0])
	attr := programAttr{
		kind: kind, count: uint32(len(code)),
		code: uint64(uintptr(unsafe.Pointer(&code[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0]))),
	}
	return bpf(bpfProgLoad, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
}

// newTable creates an array map with one value of size bytes, which programs and this process share, and maps
// it into memory.
func newTable(size int) (fd int, memory []byte, err error) {
	attr := mapAttr{kind: mapTypeArray, keySize: 4, valueSize: uint32(size), entries: 1, flags: mapMmapable}
	fd, err = bpf(bpfMapCreate, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	if err != nil {
		return -1, nil, err
	}
	memory, err = syscall.Mmap(fd, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		syscall.Close(fd)
		return -1, nil, os.NewSyscallError("mmap", err)
	}
	return fd, memory, nil
}

// wordsOf returns memory, the start of a mapping, as words.
func wordsOf(memory []byte) []atomic.Uint32 {
	return unsafe.Slice((*atomic.Uint32)(unsafe.Pointer(&memory[0])), len(memory)/4)
}

// uint64At returns a variable in a mapping. The offset at is a multiple of 8.
func uint64At(memory []byte, at int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&memory[at : at+8][0]))
}

// setFilter attaches an eBPF program to all queues of the interface, or none if program is -1.
func setFilter(fd, program int) error {
	return ioctlValue(fd, tunSetFilterEBPF, int32(program))
}

// monotonic returns the clock that bpf_ktime_get_ns returns to programs, in nanoseconds.
func monotonic() int64 {
	const clockMonotonic = 1
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}
