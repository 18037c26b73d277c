package packet

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/socket"
	"loam/stack"
)

// Ring is a ring in shared memory from which a program reads frames without system calls
// (PACKET_RX_RING, linux/if_packet.h, Documentation/networking/packet_mmap.rst). In version 2 the ring
// consists of slots for one frame each. In version 3 it consists of blocks. A block is handed to the
// program when it is full, or some time after its first frame. A status word in each slot or block says
// who owns it: linux.TP_STATUS_KERNEL, or linux.TP_STATUS_USER with further flags.
//
// The memory is allocated when the program maps it. Frames that arrive earlier are dropped.
type Ring struct {
	version  int // linux.TPACKET_V2 or linux.TPACKET_V3
	request  ringRequest
	cooked   bool   // SOCK_DGRAM: frames without the link header
	reserve  int    // PACKET_RESERVE: bytes that the program reserves in front of each frame
	readable func() // reports that the program has frames to read; called without mu
	arrived  func(*stack.LinkFrame) time.Time
	station  func(*stack.LinkFrame) socket.Address // returns the address of a frame's sender

	mu     sync.Mutex // guards the fields below
	bytes  []byte     // nil: not mapped
	memory fs.Memory
	maps   int  // number of times the program has mapped the ring
	next   int  // index of the slot or block that is written next
	losing bool // the last frame was dropped because the ring was full

	// State of the block that is being filled, in version 3.
	open     bool        // a block is being filled
	at, last int         // offsets in the block of the next frame and of the last frame
	frames   int         // number of frames in the block
	blocks   uint64      // number of blocks that have been opened since the start
	first    time.Time   // arrival time of the first frame of the block
	retire   *time.Timer // timer that hands over the open block
}

// ringRequest is struct tpacket_req3. Version 2 has struct tpacket_req, which ends after the field frames.
type ringRequest struct {
	blockSize, blocks, frameSize, frames int
	retire                               time.Duration
	private                              int // bytes reserved for the program at the start of each block
}

// Sizes of struct tpacket2_hdr, tpacket3_hdr and tpacket_block_desc in bytes, and alignments.
const (
	slotHeader   = 32
	frameHeader  = 48
	blockHeader  = 48
	slotAlign    = 16 // TPACKET_ALIGNMENT
	blockAlign   = 8  // V3_ALIGNMENT
	leastLinkLen = 16
)

// defaultRetire is the time after which a block is handed over, unless the program sets one.
const defaultRetire = 8 * time.Millisecond

// maxRing limits the size of a ring, in bytes.
const maxRing = 1 << 30

func alignUp(n, to int) int { return (n + to - 1) / to * to }

// parseRingRequest parses and checks the value of PACKET_RX_RING. Errors: EINVAL.
func parseRingRequest(version int, b []byte, reserve int) (ringRequest, linux.Errno) {
	size := 16
	if version == linux.TPACKET_V3 {
		size = 28
	}
	if len(b) < size {
		return ringRequest{}, linux.EINVAL
	}
	word := func(i int) int { return int(int32(binary.NativeEndian.Uint32(b[4*i:]))) }
	r := ringRequest{blockSize: word(0), blocks: word(1), frameSize: word(2), frames: word(3)}
	if version == linux.TPACKET_V3 {
		r.retire, r.private = time.Duration(uint32(word(4)))*time.Millisecond, word(5)
	}
	if r.retire == 0 {
		r.retire = defaultRetire
	}
	if r.blocks == 0 {
		if r.frames != 0 {
			return ringRequest{}, linux.EINVAL
		}
		return r, 0
	}
	switch {
	case r.blockSize <= 0 || r.blockSize%page != 0 || r.blocks < 0 || r.blocks > maxRing/r.blockSize,
		r.frameSize < headerRoom(version)+reserve || r.frameSize%slotAlign != 0 || r.frameSize > r.blockSize,
		r.blockSize/r.frameSize*r.blocks != r.frames,
		version == linux.TPACKET_V3 && (r.private < 0 || blockHeader+alignUp(r.private, blockAlign)+r.frameSize > r.blockSize):
		return ringRequest{}, linux.EINVAL
	}
	return r, 0
}

// headerRoom returns the size of the headers in front of each frame: struct tpacket2_hdr or tpacket3_hdr, and the sender's
// address.
func headerRoom(version int) int {
	if version == linux.TPACKET_V3 {
		return frameHeader + linux.SizeofSockaddrLl
	}
	return slotHeader + linux.SizeofSockaddrLl
}

// offsets returns the offsets of a frame's link header (mac) and of its payload (net), relative to the start of its slot or
// of its frame header.
func (r *Ring) offsets(linkHeader int) (mac, net int) {
	room := headerRoom(r.version)
	if r.cooked {
		net = alignUp(room, slotAlign) + leastLinkLen + r.reserve
		return net, net
	}
	net = alignUp(room+max(linkHeader, leastLinkLen), slotAlign) + r.reserve
	return net - linkHeader, net
}

// Map implements mapping.Object. The first call allocates the memory of the ring. Errors: ENOMEM; EINVAL unless size is the
// size of the whole ring.
func (r *Ring) Map(size int64, reserve fs.Reserve) (fs.Memory, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if size != int64(r.request.blockSize*r.request.blocks) {
		return nil, linux.EINVAL
	}
	if r.maps == 0 {
		memory, err := reserve(size)
		if err != nil {
			return nil, err
		}
		if r.bytes, err = memory.Bytes(size); err != nil {
			memory.Free()
			return nil, err
		}
		r.memory = memory
		r.next, r.open = 0, false
		r.prepare()
	}
	r.maps++
	return r.memory, nil
}

// prepare writes the constant fields of all blocks. A program that waits for a block may read them
// early.
func (r *Ring) prepare() {
	if r.version != linux.TPACKET_V3 {
		return
	}
	for i := range r.request.blocks {
		b := r.block(i)
		binary.NativeEndian.PutUint32(b[0:], linux.TPACKET_V3)
		binary.NativeEndian.PutUint32(b[4:], blockHeader)
		binary.NativeEndian.PutUint32(b[16:], uint32(r.firstFrame()))
	}
}

// firstFrame returns the offset of the first frame in a block.
func (r *Ring) firstFrame() int { return blockHeader + alignUp(r.request.private, blockAlign) }

// Unmap implements mapping.Object.
func (r *Ring) Unmap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.maps--; r.maps == 0 {
		r.memory.Free()
		r.memory, r.bytes, r.open = nil, nil, false
	}
}

// Close implements mapping.Object.
func (r *Ring) Close() error { return nil }

// isMapped reports whether the program has mapped the ring.
func (r *Ring) isMapped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.maps > 0
}

// waits reports whether the program has not yet returned the slot or block that was handed over last.
func (r *Ring) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes == nil {
		return false
	}
	if r.version == linux.TPACKET_V3 {
		return r.blockStatus(before(r.next, r.request.blocks)).Load() != linux.TP_STATUS_KERNEL
	}
	return Status(r.slot(before(r.next, r.request.frames))).Load() != linux.TP_STATUS_KERNEL
}

func before(i, n int) int { return (i + n - 1) % n }

// put stores a frame in the ring, and reports whether there was room.
func (r *Ring) put(frame []byte, info *stack.LinkFrame) bool {
	r.mu.Lock()
	ready, ok := false, false
	if r.bytes != nil {
		if r.version == linux.TPACKET_V3 {
			ready, ok = r.putInBlock(frame, info)
		} else {
			ready, ok = r.putInSlot(frame, info)
		}
	}
	r.losing = !ok
	r.mu.Unlock()
	if ready {
		r.readable()
	}
	return ok
}

// slot returns a slot of version 2. A slot does not cross the end of its block.
func (r *Ring) slot(i int) []byte {
	q := &r.request
	each := q.blockSize / q.frameSize
	at := i/each*q.blockSize + i%each*q.frameSize
	return r.bytes[at : at+q.frameSize]
}

// putInSlot stores a frame in the next slot of version 2. The status word is stored last, and passes
// the slot to the program. The caller holds mu.
func (r *Ring) putInSlot(frame []byte, info *stack.LinkFrame) (ready, ok bool) {
	b := r.slot(r.next)
	if Status(b).Load() != linux.TP_STATUS_KERNEL {
		return false, false
	}
	mac, net := r.offsets(info.Header)
	if mac >= len(b) {
		return false, false
	}
	n := copy(b[mac:], frame)
	t := r.arrived(info)
	binary.NativeEndian.PutUint32(b[4:], uint32(info.WireLen))
	binary.NativeEndian.PutUint32(b[8:], uint32(n))
	binary.NativeEndian.PutUint16(b[12:], uint16(mac))
	binary.NativeEndian.PutUint16(b[14:], uint16(net))
	binary.NativeEndian.PutUint32(b[16:], uint32(t.Unix()))
	binary.NativeEndian.PutUint32(b[20:], uint32(t.Nanosecond()))
	clear(b[24:slotHeader])
	copy(b[slotHeader:], r.station(info).Append(nil))
	Status(b).Store(r.statusOf(info))
	r.next = (r.next + 1) % r.request.frames
	return true, true
}

// frameStatus returns the flags TP_STATUS_* that describe a frame.
func frameStatus(info *stack.LinkFrame) uint32 {
	if info.Partial {
		return linux.TP_STATUS_USER | linux.TP_STATUS_CSUMNOTREADY
	}
	return linux.TP_STATUS_USER
}

// statusOf returns the value of the status word for a frame. It adds TP_STATUS_LOSING if a frame has been dropped.
func (r *Ring) statusOf(info *stack.LinkFrame) uint32 {
	if r.losing {
		return frameStatus(info) | linux.TP_STATUS_LOSING
	}
	return frameStatus(info)
}

func (r *Ring) block(i int) []byte {
	return r.bytes[i*r.request.blockSize : (i+1)*r.request.blockSize]
}

func (r *Ring) blockStatus(i int) *atomic.Uint32 { return Status(r.block(i)[8:]) }

// putInBlock appends a frame to the open block of version 3. If the frame does not fit, it hands the
// block over (ready) and opens the next one. The caller holds mu.
func (r *Ring) putInBlock(frame []byte, info *stack.LinkFrame) (ready, ok bool) {
	mac, net := r.offsets(info.Header)
	room := r.request.blockSize - r.firstFrame()
	if mac >= room {
		return false, false
	}
	n := min(len(frame), room-mac)
	need := alignUp(mac+n, blockAlign)
	if r.open && r.at+need > r.request.blockSize {
		r.handOver(0)
		ready = true
	}
	if !r.open && !r.beginBlock() {
		return ready, false
	}
	t := r.arrived(info)
	if r.frames == 0 {
		r.first = t
	}
	b := r.block(r.next)[r.at:]
	clear(b[:frameHeader])
	binary.NativeEndian.PutUint32(b[0:], uint32(need))
	binary.NativeEndian.PutUint32(b[4:], uint32(t.Unix()))
	binary.NativeEndian.PutUint32(b[8:], uint32(t.Nanosecond()))
	binary.NativeEndian.PutUint32(b[12:], uint32(n))
	binary.NativeEndian.PutUint32(b[16:], uint32(info.WireLen))
	binary.NativeEndian.PutUint32(b[20:], r.statusOf(info))
	binary.NativeEndian.PutUint16(b[24:], uint16(mac))
	binary.NativeEndian.PutUint16(b[26:], uint16(net))
	copy(b[frameHeader:], r.station(info).Append(nil))
	copy(b[mac:], frame[:n])
	r.last = r.at
	r.at += need
	r.frames++
	return ready, true
}

// beginBlock opens the next block. It returns false if the program still owns it.
func (r *Ring) beginBlock() bool {
	if r.blockStatus(r.next).Load() != linux.TP_STATUS_KERNEL {
		return false
	}
	r.open, r.at, r.frames = true, r.firstFrame(), 0
	r.blocks++
	number := r.blocks
	r.retire = time.AfterFunc(r.request.retire, func() { r.retired(number) })
	return true
}

// retired hands over the block with a number when its time has passed. It runs on a timer's goroutine.
func (r *Ring) retired(number uint64) {
	r.mu.Lock()
	mine := r.open && r.blocks == number
	if mine {
		r.handOver(linux.TP_STATUS_BLK_TMO)
	}
	r.mu.Unlock()
	if mine {
		r.readable()
	}
}

// handOver passes the open block to the program, and stores why, a flag TP_STATUS_*, in the block header. The caller holds
// mu.
func (r *Ring) handOver(why uint32) {
	r.retire.Stop()
	b := r.block(r.next)
	last := b[r.last:]
	end := time.Unix(int64(binary.NativeEndian.Uint32(last[4:])), int64(binary.NativeEndian.Uint32(last[8:])))
	binary.NativeEndian.PutUint32(last, 0) // an offset of 0 to the next frame marks the last frame
	binary.NativeEndian.PutUint32(b[12:], uint32(r.frames))
	binary.NativeEndian.PutUint32(b[20:], uint32(r.at))
	binary.NativeEndian.PutUint64(b[24:], r.blocks)
	for i, t := range [...]time.Time{r.first, end} {
		binary.NativeEndian.PutUint32(b[32+8*i:], uint32(t.Unix()))
		binary.NativeEndian.PutUint32(b[36+8*i:], uint32(t.Nanosecond()))
	}
	r.blockStatus(r.next).Store(linux.TP_STATUS_USER | why)
	r.open = false
	r.next = (r.next + 1) % r.request.blocks
}

// drop removes the ring when its socket is closed.
func (r *Ring) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open {
		r.retire.Stop()
		r.open = false
	}
	r.bytes = nil // a program that still has the ring mapped may read the memory
}

// page is the unit of a block's size, in bytes.
const page = 4096
