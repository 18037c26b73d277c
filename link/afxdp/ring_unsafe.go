//go:build linux

package afxdp

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is one of the four rings that a socket shares with the kernel
// (Documentation/networking/af_xdp.rst). It is a circle of slots with two indices and a word of
// flags. The producer increments one index and the consumer the other; both wrap around at 32 bits.
//
//	fill        the program produces: memory for frames that arrive
//	rx          the program consumes: descriptors of received frames
//	tx          the program produces: descriptors of frames to be sent
//	completion  the program consumes: memory of frames that have left
//
// Each index is written by one side, and only after the slots that it covers. The other side loads
// the index before it reads the slots. Go's atomics order everything before a store and after a
// load, which is stronger than the barriers that the kernel requires.
//
// The ring also keeps local copies of both indices. The program's index is published once per
// batch. The kernel's index is loaded only when the local copy does not suffice, because each load
// takes the cache line away from the other side.
//
// Safety, for every use of unsafe here: the words are at the offsets that the kernel reports
// (XDP_MMAP_OFFSETS), aligned, in a mapping of the required size. The mapping stays until unmap,
// and the ring is not used after that.
type ring[T uint64 | unix.XDPDesc] struct {
	mem                       []byte
	producer, consumer, flags *uint32 // indices and flags, which the kernel shares
	slots                     []T     // slots of the ring, which the kernel shares
	mask                      uint32  // number of slots minus 1
	ours                      uint32  // the program's index: the next slot to fill or to read
	theirs                    uint32  // the kernel's index when it was last loaded
}

// mapRing maps the ring of n slots, a power of two. The parameter which is the mmap
// offset that selects the ring.
func mapRing[T uint64 | unix.XDPDesc](fd int, which int64, at unix.XDPRingOffset, n int) (r ring[T], err error) {
	var slot T
	r.mem, err = unix.Mmap(fd, which, int(at.Desc)+n*int(unsafe.Sizeof(slot)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return r, os.NewSyscallError("mmap", err)
	}
	word := func(off uint64) *uint32 { return (*uint32)(unsafe.Pointer(&r.mem[off])) }
	r.producer, r.consumer, r.flags = word(at.Producer), word(at.Consumer), word(at.Flags)
	r.slots = unsafe.Slice((*T)(unsafe.Pointer(&r.mem[at.Desc])), n)
	r.mask = uint32(n - 1)
	return r, nil
}

func (r *ring[T]) unmap() {
	if r.mem != nil {
		unix.Munmap(r.mem)
		*r = ring[T]{}
	}
}

// slot returns the k-th slot after the program's index.
func (r *ring[T]) slot(k uint32) *T { return &r.slots[(r.ours+k)&r.mask] }

// Methods of a ring that the program produces.

// free returns the number of empty slots. It loads the kernel's index only if fewer than
// want slots are known to be empty.
func (r *ring[T]) free(want uint32) uint32 {
	size := r.mask + 1
	if n := size - (r.ours - r.theirs); n >= want {
		return n
	}
	r.theirs = atomic.LoadUint32(r.consumer)
	return size - (r.ours - r.theirs)
}

// produce hands n filled slots to the kernel. The caller often reads the kernel's flags next. That
// load must not happen before the kernel can see the slots; otherwise the program and the kernel
// could wait for each other. Go's atomic store is ordered with such a load, except under the race
// detector: its runtime uses a plain move for memory outside Go's heap. A swap is ordered in both
// cases, and compiles to the same instruction here.
func (r *ring[T]) produce(n uint32) {
	r.ours += n
	atomic.SwapUint32(r.producer, r.ours)
}

// taken loads and returns the index up to which the kernel has read.
func (r *ring[T]) taken() uint32 {
	r.theirs = atomic.LoadUint32(r.consumer)
	return r.theirs
}

// Methods of a ring that the program consumes.

// ready returns the number of slots that can be read. It loads the kernel's index only if
// fewer than want slots are known to be readable.
func (r *ring[T]) ready(want uint32) uint32 {
	if n := r.theirs - r.ours; n >= want {
		return n
	}
	r.theirs = atomic.LoadUint32(r.producer)
	return r.theirs - r.ours
}

// skip moves past n slots. The program keeps them until publish.
func (r *ring[T]) skip(n uint32) { r.ours += n }

// publish returns all slots before the program's index to the kernel.
func (r *ring[T]) publish() { atomic.StoreUint32(r.consumer, r.ours) }

// waiting reports whether the kernel has produced slots that are not consumed yet. It reads only
// shared words, so any goroutine may call it.
func (r *ring[T]) waiting() bool {
	return atomic.LoadUint32(r.producer) != atomic.LoadUint32(r.consumer)
}

// needsWakeup reports whether the driver waits for a system call before it continues with a ring
// that the program produces.
func (r *ring[T]) needsWakeup() bool {
	return atomic.LoadUint32(r.flags)&unix.XDP_RING_NEED_WAKEUP != 0
}

// Socket options for which package unix has no function.

// register makes memory the UMEM of socket fd. Safety: memory is not in Go's heap, and the kernel
// pins its pages while the socket exists.
func register(fd int, memory []byte, chunk int) error {
	reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&memory[0]))), Len: uint64(len(memory)), Size: uint32(chunk)}
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_UMEM_REG, uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// mapOffsets returns the offsets of the indices, flags and slots in the mappings of the rings of
// fd.
func mapOffsets(fd int) (o unix.XDPMmapOffsets, err error) {
	return o, query(fd, unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&o), unsafe.Sizeof(o))
}

// statistics returns the kernel's counters of fd since it was opened.
func statistics(fd int) (s unix.XDPStatistics, err error) {
	return s, query(fd, unix.XDP_STATISTICS, unsafe.Pointer(&s), unsafe.Sizeof(s))
}

// options returns the flags of XDP_OPTIONS.
func options(fd int) (flags uint32, err error) {
	return flags, query(fd, unix.XDP_OPTIONS, unsafe.Pointer(&flags), unsafe.Sizeof(flags))
}

// query reads a socket option. Safety: the kernel writes size bytes to p, only during the call.
func query(fd, option int, p unsafe.Pointer, size uintptr) error {
	length := uint32(size)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option), uintptr(p), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return os.NewSyscallError("getsockopt", errno)
	}
	return nil
}

// channels is struct ethtool_channels of linux/ethtool.h.
type channels struct {
	command  uint32
	_        [4]uint32 // maximum numbers of channels
	rx, tx   uint32
	_        uint32 // number of channels for other events
	combined uint32
}

// channelsRequest is struct ifreq with a pointer as its data.
type channelsRequest struct {
	name [unix.IFNAMSIZ]byte
	data *channels
	_    [16]byte
}

// Queues returns the number of receive and transmit queues that an interface uses. It returns 1 and
// 1 if the driver does not report them.
func Queues(name string) (rx, tx int) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 1, 1
	}
	defer unix.Close(s)
	c := channels{command: unix.ETHTOOL_GCHANNELS}
	r := channelsRequest{data: &c}
	copy(r.name[:unix.IFNAMSIZ-1], name)
	// Safety: the kernel reads r and writes c only during the call. Both are on the heap, or on a
	// stack that does not move during the call.
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return 1, 1
	}
	return max(1, int(c.rx+c.combined)), max(1, int(c.tx+c.combined))
}
