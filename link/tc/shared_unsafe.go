//go:build linux

package tc

import (
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Memory shared with eBPF programs, and the system call that runs a program.
//
// Safety, for every use of unsafe here: a pointer points into a mapping of the size that the kernel
// reported, at an aligned offset, and is not used after the mapping is removed.

// mapEntries maps an array map of n entries. The size of an entry must be a multiple of 8.
func mapEntries(m *ebpf.Map, entry, n int) ([]byte, error) {
	b, err := unix.Mmap(m.FD(), 0, entry*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	return b, os.NewSyscallError("mmap", err)
}

// controlAt returns the control block at the start of memory. The process waits while the program
// runs, so there are no concurrent accesses.
func controlAt(memory []byte) *control { return (*control)(unsafe.Pointer(&memory[0])) }

// Offsets of the fields of control.
const (
	nextAt  = int16(unsafe.Offsetof(control{}.next))
	countAt = int16(unsafe.Offsetof(control{}.count))
	errnoAt = int16(unsafe.Offsetof(control{}.errno))
)

// setLength and length write and read the header of a slot.
func setLength(slot []byte, n int) { *(*uint32)(unsafe.Pointer(&slot[0])) = uint32(n) }
func length(slot []byte) int       { return int(*(*uint32)(unsafe.Pointer(&slot[0]))) }

// counterAt returns a counter that eBPF programs increment.
func counterAt(memory []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&memory[0])) }

// testRun is the part of union bpf_attr for BPF_PROG_TEST_RUN.
type testRun struct {
	program, result      uint32
	sizeIn, sizeOut      uint32
	dataIn, dataOut      uint64
	repeat, duration     uint32
	contextIn            uint32
	contextOut           uint32
	contexts             [2]uint64
	flags, cpu, batch, _ uint32
}

// times runs the program repeat times on a packet that initially holds frame. frame is in a
// mapping, so the garbage collector does not move it.
func (r *testRun) times(frame []byte, repeat int) unix.Errno {
	r.sizeIn, r.dataIn, r.repeat = uint32(len(frame)), uint64(uintptr(unsafe.Pointer(&frame[0]))), uint32(repeat)
	_, _, errno := unix.RawSyscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(r)), unsafe.Sizeof(*r))
	return errno
}

// ring is the reader's view of a BPF_MAP_TYPE_RINGBUF. It consists of a page with the reader's
// position, a page with the kernel's position, and the records. The records are mapped twice in a
// row, so no record wraps around. A record has a header of 8 bytes. The first four are its length
// and two flags. The kernel clears the busy flag last.
type ring struct {
	ours    []byte // mapping of the page with the reader's position
	theirs  []byte // mapping of the kernel's position and of the records
	records []byte
	read    *atomic.Uint64 // shared with the kernel: position up to which the reader has read
	written *atomic.Uint64 // shared with the kernel: position up to which the kernel has reserved
	at      uint64         // position up to which the reader has read, not yet published in read
	mask    uint64
}

const (
	recordHeader = 8
	busyFlag     = 1 << 31 // the record is being written
	discardFlag  = 1 << 30
)

// mapRing maps the pages and records of a ring buffer map. On error, the caller unmaps what was mapped.
func mapRing(m *ebpf.Map) (r *ring, err error) {
	page, size := os.Getpagesize(), int(m.MaxEntries())
	r = &ring{mask: uint64(size - 1)}
	if r.ours, err = unix.Mmap(m.FD(), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return r, os.NewSyscallError("mmap", err)
	}
	if r.theirs, err = unix.Mmap(m.FD(), int64(page), page+2*size, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return r, os.NewSyscallError("mmap", err)
	}
	r.read, r.written, r.records = counterAt(r.ours), counterAt(r.theirs), r.theirs[page:]
	return r, nil
}

// next returns the next complete record. It is valid until release.
func (r *ring) next() (record []byte, ok bool) {
	for r.at < r.written.Load() {
		b := r.records[r.at&r.mask:]
		head := (*atomic.Uint32)(unsafe.Pointer(&b[0])).Load()
		if head&busyFlag != 0 {
			return nil, false
		}
		n := uint64(head &^ discardFlag)
		r.at += (recordHeader + n + 7) &^ 7
		if head&discardFlag == 0 {
			return b[recordHeader:][:n:n], true
		}
	}
	return nil, false
}

// release returns the records that were read to the kernel.
func (r *ring) release() { r.read.Store(r.at) }

func (r *ring) unmap() {
	if r.ours != nil {
		unix.Munmap(r.ours)
	}
	if r.theirs != nil {
		unix.Munmap(r.theirs)
	}
	*r = ring{}
}
