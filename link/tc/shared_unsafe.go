//go:build linux

package tc

import (
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// What is shared with programs: memory of maps, and the system call that runs one.
//
// Safety, for every use of unsafe here: a pointer leads into a mapping of the size
// that the kernel gave, at an aligned offset, and is used before the mapping is gone.

// mapEntries maps an array map of n entries, whose size is a multiple of 8.
func mapEntries(m *ebpf.Map, entry, n int) ([]byte, error) {
	b, err := unix.Mmap(m.FD(), 0, entry*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	return b, os.NewSyscallError("mmap", err)
}

// controlAt is the control that memory begins with. The program runs while we wait for
// it, so nobody writes beside anybody.
func controlAt(memory []byte) *control { return (*control)(unsafe.Pointer(&memory[0])) }

// Offsets of its fields.
const (
	nextAt  = int16(unsafe.Offsetof(control{}.next))
	countAt = int16(unsafe.Offsetof(control{}.count))
	errnoAt = int16(unsafe.Offsetof(control{}.errno))
)

// setLength and length are the header of a slot.
func setLength(slot []byte, n int) { *(*uint32)(unsafe.Pointer(&slot[0])) = uint32(n) }
func length(slot []byte) int       { return int(*(*uint32)(unsafe.Pointer(&slot[0]))) }

// counterAt is a counter that programs add to.
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

// times runs the program so often, with a packet that holds frame, which lies in a
// mapping: the collector does not move it.
func (r *testRun) times(frame []byte, repeat int) unix.Errno {
	r.sizeIn, r.dataIn, r.repeat = uint32(len(frame)), uint64(uintptr(unsafe.Pointer(&frame[0]))), uint32(repeat)
	_, _, errno := unix.RawSyscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(r)), unsafe.Sizeof(*r))
	return errno
}

// ring is a BPF_MAP_TYPE_RINGBUF as who reads it sees it: a page with our position, a
// page with the kernel's, and the records, mapped twice in a row so that none is cut in
// two. A record has a header of 8 bytes, of which the first four are its length and two
// flags; the kernel clears the first flag last.
type ring struct {
	ours    []byte // mapping of the first page
	theirs  []byte // mapping of the rest
	records []byte
	read    *atomic.Uint64 // shared: up to where we have read
	written *atomic.Uint64 // shared: up to where the kernel has reserved
	at      uint64         // up to where we have read, not yet told
	mask    uint64
}

const (
	recordHeader = 8
	busyFlag     = 1 << 31 // the record is being written
	discardFlag  = 1 << 30
)

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

// next is the next record that is complete. It stays as it is until release.
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

// release gives the kernel back what was read.
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
