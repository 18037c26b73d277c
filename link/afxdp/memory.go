//go:build linux

package afxdp

import (
	"os"

	"golang.org/x/sys/unix"
)

// The memory that holds the frames, which the kernel calls UMEM. It is one mapping, cut into chunks
// of 2048 or 4096 bytes and shared by all sockets of a device. Each socket owns a fixed part: first
// the chunks that it sends from, then the chunks that it receives into. So the owner of a chunk
// follows from its address:
//
//	socket 0                        | socket 1 ...
//	tx slot 0, 1, ... | rx chunks   | tx slots | rx chunks
//
// A frame longer than a chunk takes several chunks (XDP_USE_SG). A send slot has enough adjacent
// chunks for the longest frame, so a frame is written as one piece. A received frame may be spread
// over any chunks, and is copied into one piece.

// Sizes in bytes. The kernel leaves XDP_PACKET_HEADROOM bytes free before each frame that it
// receives, and supports no chunk larger than a page.
const (
	smallChunk  = 2048
	largeChunk  = 4096
	rxHeadroom  = unix.XDP_PACKET_HEADROOM
	ethernetLen = 14
)

// shape describes how a memory is divided.
type shape struct {
	chunk    int // size of a chunk in bytes
	slot     int // number of chunks of a send slot
	txSlots  int // number of send slots of each socket
	rxFrames int // number of receive chunks of each socket
	longest  int // length of the longest frame in bytes
}

// layOut divides a memory so that frames of up to size bytes fit into its slots.
func layOut(size, txFrames, rxFrames int) shape {
	sh := shape{chunk: smallChunk, slot: 1, txSlots: txFrames, rxFrames: rxFrames, longest: size}
	if size > smallChunk-rxHeadroom {
		sh.chunk = largeChunk
	}
	if size > largeChunk-rxHeadroom {
		sh.slot = (size + largeChunk - 1) / largeChunk
		if sh.slot == 1 {
			sh.slot = 2 // with the headroom, a frame of this size does not fit into one chunk
		}
		// A frame takes several slots of a ring, and the length of a ring is a power of two.
		for ; sh.slot&(sh.slot-1) != 0; sh.slot++ {
		}
	}
	return sh
}

// stagger returns the offset in bytes of the i-th frame in its send slot, if the slot has room for
// an offset. Slots are a power of two apart. Without the offset, the first bytes of all frames
// would compete for a few sets of the processor's L1 cache.
func (sh shape) stagger(i int) int {
	const line, places = 64, 16
	room := (sh.slot*sh.chunk - sh.longest) / line
	if sh.multi() || room <= 0 {
		return 0
	}
	return i % min(room+1, places) * line
}

// multi reports whether a frame may take several chunks.
func (sh shape) multi() bool { return sh.slot > 1 }

// txChunks returns the number of chunks that a socket sends from.
func (sh shape) txChunks() int { return sh.txSlots * sh.slot }

// chunks returns the number of chunks of a socket.
func (sh shape) chunks() int { return sh.txChunks() + sh.rxFrames }

type memory struct {
	shape
	bytes []byte
	owner int // descriptor of the socket that registered the memory
}

func newMemory(sh shape, sockets int) (*memory, error) {
	n := sockets * sh.chunks() * sh.chunk
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &memory{shape: sh, bytes: b, owner: -1}, nil
}

// txBase and rxBase return the offsets of the two parts of the k-th socket.
func (m *memory) txBase(k int) uint64 { return uint64(k * m.chunks() * m.chunk) }
func (m *memory) rxBase(k int) uint64 { return m.txBase(k) + uint64(m.txChunks()*m.chunk) }

// close unmaps the memory. The kernel keeps the pages until the sockets are closed.
func (m *memory) close() {
	if m.bytes != nil {
		unix.Munmap(m.bytes)
		m.bytes = nil
	}
}
