package packet

import (
	"encoding/binary"
	"slices"
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
// The memory is allocated when a program maps it. Frames that arrive earlier are dropped. All mappings of a ring have the
// same memory: of a Go program (Map), or of Linux processes (Share).
type Ring struct {
	version  int // linux.TPACKET_V2 or linux.TPACKET_V3
	request  ringRequest
	cooked   bool   // SOCK_DGRAM: frames without the link header
	reserve  int    // PACKET_RESERVE: bytes that the program reserves in front of each frame
	readable func() // reports that the program has frames to read; called without mu
	arrived  func(*stack.LinkFrame) time.Time
	station  func(*stack.LinkFrame) socket.Address // returns the address of a frame's sender

	mapping sync.Mutex // guards the mappings; it may be held while memory is allocated or freed
	memory  fs.Memory  // set if a Go program has mapped the ring
	shared  Shared     // set if Linux processes have mapped the ring
	maps    int        // number of mappings

	mu     sync.Mutex // guards the fields below; taken for each frame, and after mapping
	pages  [][]byte   // content of the ring, page by page; nil: not mapped
	next   int        // index of the slot or block that is written next
	losing bool       // the last frame was dropped because the ring was full

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
		version == linux.TPACKET_V3 && (r.private < 0 || blockHeader+alignUp(r.private, blockAlign)+headerRoom(version)+reserve > r.blockSize):
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

// size returns the size of the ring in bytes.
func (r *Ring) size() int64 { return int64(r.request.blockSize * r.request.blocks) }

// Map implements mapping.Object. The first call allocates the memory of the ring. Errors: ENOMEM; EINVAL unless size is the
// size of the whole ring; ENODEV if a Linux process has mapped the ring.
func (r *Ring) Map(size int64, reserve fs.Reserve) (fs.Memory, error) {
	r.mapping.Lock()
	defer r.mapping.Unlock()
	switch {
	case size != r.size():
		return nil, linux.EINVAL
	case r.shared != nil:
		return nil, linux.ENODEV
	}
	if r.maps == 0 {
		memory, err := reserve(size)
		if err != nil {
			return nil, err
		}
		b, err := memory.Bytes(size)
		if err != nil {
			memory.Free()
			return nil, err
		}
		r.memory = memory
		r.start(slices.Collect(slices.Chunk(b, page)))
	}
	r.maps++
	return r.memory, nil
}

// Shared is the memory of a ring that Linux processes map.
type Shared interface {
	// Content returns the bytes of a page, which stay valid until Drop is called.
	Content(page int) []byte
	// Drop releases the memory.
	Drop()
}

// Share returns the memory of the ring for a mapping by a Linux process, and counts it as one mapping. For the first mapping,
// it calls allocate with the size of the ring. Count reports further mappings and their ends. Errors: those of allocate;
// EINVAL unless size is the size of the whole ring; ENODEV if a Go program has mapped the ring.
func (r *Ring) Share(size int64, allocate func(size int64) (Shared, error)) (Shared, error) {
	r.mapping.Lock()
	defer r.mapping.Unlock()
	switch {
	case size != r.size():
		return nil, linux.EINVAL
	case r.memory != nil:
		return nil, linux.ENODEV
	}
	if r.shared == nil {
		shared, err := allocate(size)
		if err != nil {
			return nil, err
		}
		r.shared = shared
		pages := make([][]byte, size/page)
		for i := range pages {
			pages[i] = shared.Content(i)
		}
		r.start(pages)
	}
	r.maps++
	return r.shared, nil
}

// Count adds n to the number of mappings by Linux processes. The end of the last mapping releases the memory.
func (r *Ring) Count(n int) {
	r.mapping.Lock()
	defer r.mapping.Unlock()
	if r.maps += n; r.maps == 0 {
		r.stop()
		r.shared.Drop()
		r.shared = nil
	}
}

// start begins to fill the ring, whose content is zero. It writes the constant fields of all blocks, because a program that
// waits for a block may read them early.
func (r *Ring) start(pages [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages, r.next, r.open = pages, 0, false
	if r.version != linux.TPACKET_V3 {
		return
	}
	for i := range r.request.blocks {
		b := r.block(i)
		r.put32(b, linux.TPACKET_V3)
		r.put32(b+4, blockHeader)
		r.put32(b+16, uint32(r.firstFrame()))
	}
}

// stop ends filling the ring before its memory is freed.
func (r *Ring) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages, r.open = nil, false
}

// write copies b to an offset in the ring.
func (r *Ring) write(at int, b []byte) {
	for len(b) > 0 {
		n := copy(r.pages[at/page][at%page:], b)
		at, b = at+n, b[n:]
	}
}

// put32 stores a word at an offset in the ring, a multiple of four. word32 reads a word.
func (r *Ring) put32(at int, v uint32) { binary.NativeEndian.PutUint32(r.pages[at/page][at%page:], v) }

func (r *Ring) word32(at int) uint32 { return binary.NativeEndian.Uint32(r.pages[at/page][at%page:]) }

// status returns the status word at an offset in the ring.
func (r *Ring) status(at int) *atomic.Uint32 { return Status(r.pages[at/page][at%page:]) }

// firstFrame returns the offset of the first frame in a block.
func (r *Ring) firstFrame() int { return blockHeader + alignUp(r.request.private, blockAlign) }

// Unmap implements mapping.Object.
func (r *Ring) Unmap() {
	r.mapping.Lock()
	defer r.mapping.Unlock()
	if r.maps--; r.maps == 0 {
		r.stop()
		r.memory.Free()
		r.memory = nil
	}
}

// Close implements mapping.Object.
func (r *Ring) Close() error { return nil }

// isMapped reports whether the program has mapped the ring.
func (r *Ring) isMapped() bool {
	r.mapping.Lock()
	defer r.mapping.Unlock()
	return r.maps > 0
}

// waits reports whether the program has not yet returned the slot or block that was handed over last.
func (r *Ring) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pages == nil {
		return false
	}
	if r.version == linux.TPACKET_V3 {
		return r.blockStatus(before(r.next, r.request.blocks)).Load() != linux.TP_STATUS_KERNEL
	}
	return r.status(r.slot(before(r.next, r.request.frames))).Load() != linux.TP_STATUS_KERNEL
}

func before(i, n int) int { return (i + n - 1) % n }

// put stores a frame in the ring, and reports whether there was room.
func (r *Ring) put(frame []byte, info *stack.LinkFrame) bool {
	r.mu.Lock()
	ready, ok := false, false
	if r.pages != nil {
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

// slot returns the offset of a slot of version 2. A slot does not cross the end of its block.
func (r *Ring) slot(i int) int {
	q := &r.request
	each := q.blockSize / q.frameSize
	return i/each*q.blockSize + i%each*q.frameSize
}

// putInSlot stores a frame in the next slot of version 2. The status word is stored last, and passes
// the slot to the program. The caller holds mu.
func (r *Ring) putInSlot(frame []byte, info *stack.LinkFrame) (ready, ok bool) {
	at := r.slot(r.next)
	if r.status(at).Load() != linux.TP_STATUS_KERNEL {
		return false, false
	}
	mac, net := r.offsets(info.Header)
	room := r.request.frameSize - mac
	if room <= 0 {
		return false, false
	}
	frame = frame[:min(len(frame), room)]
	t := r.arrived(info)
	var h [slotHeader]byte
	binary.NativeEndian.PutUint32(h[4:], uint32(info.WireLen))
	binary.NativeEndian.PutUint32(h[8:], uint32(len(frame)))
	binary.NativeEndian.PutUint16(h[12:], uint16(mac))
	binary.NativeEndian.PutUint16(h[14:], uint16(net))
	binary.NativeEndian.PutUint32(h[16:], uint32(t.Unix()))
	binary.NativeEndian.PutUint32(h[20:], uint32(t.Nanosecond()))
	r.write(at+4, h[4:])
	r.write(at+slotHeader, r.station(info).Append(nil))
	r.write(at+mac, frame)
	r.status(at).Store(r.statusOf(info))
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

// block returns the offset of a block of version 3.
func (r *Ring) block(i int) int { return i * r.request.blockSize }

func (r *Ring) blockStatus(i int) *atomic.Uint32 { return r.status(r.block(i) + 8) }

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
	var h [frameHeader]byte
	binary.NativeEndian.PutUint32(h[0:], uint32(need))
	binary.NativeEndian.PutUint32(h[4:], uint32(t.Unix()))
	binary.NativeEndian.PutUint32(h[8:], uint32(t.Nanosecond()))
	binary.NativeEndian.PutUint32(h[12:], uint32(n))
	binary.NativeEndian.PutUint32(h[16:], uint32(info.WireLen))
	binary.NativeEndian.PutUint32(h[20:], r.statusOf(info))
	binary.NativeEndian.PutUint16(h[24:], uint16(mac))
	binary.NativeEndian.PutUint16(h[26:], uint16(net))
	at := r.block(r.next) + r.at
	r.write(at, h[:])
	r.write(at+frameHeader, r.station(info).Append(nil))
	r.write(at+mac, frame[:n])
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
	last := b + r.last
	end := time.Unix(int64(r.word32(last+4)), int64(r.word32(last+8)))
	r.put32(last, 0) // an offset of 0 to the next frame marks the last frame
	r.put32(b+12, uint32(r.frames))
	r.put32(b+20, uint32(r.at))
	r.put32(b+24, uint32(r.blocks))
	r.put32(b+28, uint32(r.blocks>>32))
	for i, t := range [...]time.Time{r.first, end} {
		r.put32(b+32+8*i, uint32(t.Unix()))
		r.put32(b+36+8*i, uint32(t.Nanosecond()))
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
	r.pages = nil // a program that still has the ring mapped may read the memory
}

// page is the unit of a block's size, in bytes.
const page = 4096
