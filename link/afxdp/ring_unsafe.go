//go:build linux

package afxdp

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A ring is one of the four that a socket shares with the kernel
// (Documentation/networking/af_xdp.rst): slots in a circle, an index that the
// producer counts up and one that the consumer does, both without end, and a
// word of flags.
//
//	fill        we produce: memory for frames that arrive
//	rx          we consume: frames that have arrived, as descriptors
//	tx          we produce: frames to be sent, as descriptors
//	completion  we consume: memory of frames that have left
//
// One side writes each index, and only after the slots that it covers; the other
// loads it before it looks at them. Go's atomics order all that goes before a
// store and after a load, which is more than the barriers of the kernel ask for.
// Both indices are kept here too: what we own is published once a batch, and
// what the kernel owns is loaded only when what is known of it runs out, since
// each look takes the cache line away from the other side.
//
// Safety, for every use of unsafe here: the words lie where the kernel said
// (XDP_MMAP_OFFSETS) in a mapping of the size that the kernel prescribes, aligned
// as it says, and the mapping stays until unmap, after which nobody uses the ring.
type ring[T uint64 | unix.XDPDesc] struct {
	mem                       []byte
	producer, consumer, flags *uint32 // shared
	slots                     []T     // shared
	mask                      uint32  // slots - 1
	ours                      uint32  // our index: of the next slot to fill or to read
	theirs                    uint32  // the kernel's, as it was when we looked
}

// mapRing maps the ring of n slots, a power of two, at an offset that names which
// ring it is.
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

// slot is the k-th slot from our index on.
func (r *ring[T]) slot(k uint32) *T { return &r.slots[(r.ours+k)&r.mask] }

// For a ring that we produce.

// free is how many slots are empty, for somebody who has use for want.
func (r *ring[T]) free(want uint32) uint32 {
	size := r.mask + 1
	if n := size - (r.ours - r.theirs); n >= want {
		return n
	}
	r.theirs = atomic.LoadUint32(r.consumer)
	return size - (r.ours - r.theirs)
}

// produce hands n filled slots over. What follows is often a look at the kernel's
// word of flags, which must not come before the kernel can see the slots: then each
// would wait for the other. Go's atomic store is in order with such a load, but not
// under the race detector, whose own runtime makes a plain move of it for memory that
// is not in Go's heap. A swap is, everywhere, and the same instruction here.
func (r *ring[T]) produce(n uint32) {
	r.ours += n
	atomic.SwapUint32(r.producer, r.ours)
}

// taken is the index up to which the kernel has read.
func (r *ring[T]) taken() uint32 {
	r.theirs = atomic.LoadUint32(r.consumer)
	return r.theirs
}

// For a ring that we consume.

// ready is how many slots from our index on may be read. It looks again if less
// than want are known of.
func (r *ring[T]) ready(want uint32) uint32 {
	if n := r.theirs - r.ours; n >= want {
		return n
	}
	r.theirs = atomic.LoadUint32(r.producer)
	return r.theirs - r.ours
}

// skip goes on by n slots, which stay ours until publish.
func (r *ring[T]) skip(n uint32) { r.ours += n }

// publish gives all slots before our index back.
func (r *ring[T]) publish() { atomic.StoreUint32(r.consumer, r.ours) }

// waiting reports whether the kernel has produced what nobody has consumed. It
// reads shared words only, and so may run beside the owner of the ring.
func (r *ring[T]) waiting() bool {
	return atomic.LoadUint32(r.producer) != atomic.LoadUint32(r.consumer)
}

// needsWakeup reports whether the driver waits for a system call before it goes
// on with a ring that we produce.
func (r *ring[T]) needsWakeup() bool {
	return atomic.LoadUint32(r.flags)&unix.XDP_RING_NEED_WAKEUP != 0
}

// Options of sockets that package unix has no function for.

// register makes memory the UMEM of socket fd. Safety: the kernel pins the pages
// for as long as the socket lives; they are no memory of the collector.
func register(fd int, memory []byte, chunk int) error {
	reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&memory[0]))), Len: uint64(len(memory)), Size: uint32(chunk)}
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, unix.XDP_UMEM_REG, uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// mapOffsets says where in the mappings of the rings of fd what is.
func mapOffsets(fd int) (o unix.XDPMmapOffsets, err error) {
	return o, query(fd, unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&o), unsafe.Sizeof(o))
}

// statistics are the kernel's counters of fd since it was opened.
func statistics(fd int) (s unix.XDPStatistics, err error) {
	return s, query(fd, unix.XDP_STATISTICS, unsafe.Pointer(&s), unsafe.Sizeof(s))
}

// options are the flags of XDP_OPTIONS.
func options(fd int) (flags uint32, err error) {
	return flags, query(fd, unix.XDP_OPTIONS, unsafe.Pointer(&flags), unsafe.Sizeof(flags))
}

// query reads an option. Safety: the kernel writes to p, size bytes, during the
// call only.
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
	_        [4]uint32 // the most that there may be of each
	rx, tx   uint32
	_        uint32 // of neither
	combined uint32
}

// channelsRequest is struct ifreq with a pointer.
type channelsRequest struct {
	name [unix.IFNAMSIZ]byte
	data *channels
	_    [16]byte
}

// Queues is how many receive and transmit queues an interface uses; 1 and 1 if its
// driver does not say.
func Queues(name string) (rx, tx int) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 1, 1
	}
	defer unix.Close(s)
	c := channels{command: unix.ETHTOOL_GCHANNELS}
	r := channelsRequest{data: &c}
	copy(r.name[:unix.IFNAMSIZ-1], name)
	// Safety: the kernel reads r and writes c during the call only; both are in the
	// heap or on a stack that does not move while the call lasts.
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return 1, 1
	}
	return max(1, int(c.rx+c.combined)), max(1, int(c.tx+c.combined))
}
