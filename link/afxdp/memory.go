//go:build linux

package afxdp

import (
	"os"

	"golang.org/x/sys/unix"
)

// The memory that frames lie in, which the kernel calls UMEM: one piece, cut into
// chunks of 2048 or 4096 bytes, shared by all sockets of a device. Each socket
// has a part of its own, first the chunks that it sends from, then those that it
// receives into, so that nobody has to ask whose a chunk is:
//
//	socket 0                        | socket 1 ...
//	tx slot 0, 1, ... | rx chunks   | tx slots | rx chunks
//
// A frame that is longer than a chunk takes several (XDP_USE_SG). A slot to send
// from is so many chunks that the longest frame fits; they lie side by side, so
// that whoever writes the frame sees one piece. What arrives is spread over any
// chunks, and is copied together.

// Sizes. The kernel leaves XDP_PACKET_HEADROOM bytes free in front of each frame
// that it receives, and takes no chunk that is longer than a page.
const (
	smallChunk  = 2048
	largeChunk  = 4096
	rxHeadroom  = unix.XDP_PACKET_HEADROOM
	ethernetLen = 14
)

// shape is how a memory is cut up.
type shape struct {
	chunk    int // bytes
	slot     int // chunks of a frame to be sent
	txSlots  int // of each socket
	rxFrames int // of each socket, in chunks
	longest  int // frame, bytes
}

// layOut finds the shape for frames of size bytes.
func layOut(size, txFrames, rxFrames int) shape {
	sh := shape{chunk: smallChunk, slot: 1, txSlots: txFrames, rxFrames: rxFrames, longest: size}
	if size > smallChunk-rxHeadroom {
		sh.chunk = largeChunk
	}
	if size > largeChunk-rxHeadroom {
		sh.slot = (size + largeChunk - 1) / largeChunk
		if sh.slot == 1 {
			sh.slot = 2 // the headroom makes the difference: received in two pieces
		}
		// A frame takes several slots of a ring, and rings are powers of two.
		for ; sh.slot&(sh.slot-1) != 0; sh.slot++ {
		}
	}
	return sh
}

// stagger is how far into its slot the i-th frame to be sent begins, where the slot
// has room for that. Slots lie a power of two apart: the first bytes of all of them
// would share a few sets of the processor's first cache, and drive one another out.
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

// txChunks is how many chunks a socket sends from.
func (sh shape) txChunks() int { return sh.txSlots * sh.slot }

// chunks is how many chunks a socket has.
func (sh shape) chunks() int { return sh.txChunks() + sh.rxFrames }

type memory struct {
	shape
	bytes []byte
	owner int // descriptor of the socket that registered it
}

func newMemory(sh shape, sockets int) (*memory, error) {
	n := sockets * sh.chunks() * sh.chunk
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &memory{shape: sh, bytes: b, owner: -1}, nil
}

// txBase and rxBase are where the parts of the k-th socket begin.
func (m *memory) txBase(k int) uint64 { return uint64(k * m.chunks() * m.chunk) }
func (m *memory) rxBase(k int) uint64 { return m.txBase(k) + uint64(m.txChunks()*m.chunk) }

// close unmaps it. The kernel keeps the pages until its sockets are gone.
func (m *memory) close() {
	if m.bytes != nil {
		unix.Munmap(m.bytes)
		m.bytes = nil
	}
}
