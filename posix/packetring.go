package posix

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"loam/fs"
	"loam/stack"
)

// packetRing is a ring that a program reads frames from without a call (PACKET_RX_RING,
// linux/if_packet.h, Documentation/networking/packet_mmap.rst). Of version 2 it is slots of a
// frame each; of version 3 blocks, which are handed over when they are full, or a while after
// the first frame came. A word of each says whose it is: statusKernel or statusUser and more.
//
// The memory is there when the program maps it; what comes before is dropped.
type packetRing struct {
	version  int // packetV2 or packetV3
	request  ringRequest
	cooked   bool
	reserve  int    // PACKET_RESERVE
	readable func() // something is there for the program; called without mu
	arrived  func(*stack.LinkFrame) time.Time
	station  func(*stack.LinkFrame) Address // who sent it

	mu     sync.Mutex // guards what follows
	bytes  []byte     // nil: not mapped
	memory fs.Memory
	maps   int
	next   int // slot or block that is written next
	losing bool

	// Of the block that is being filled, of version 3.
	open     bool
	at, last int // where in it the next frame goes, and where the last one lies
	frames   int
	blocks   uint64 // that have been begun
	first    time.Time
	retire   *time.Timer
}

// ringRequest is struct tpacket_req3; of version 2 it ends with frames.
type ringRequest struct {
	blockSize, blocks, frameSize, frames int
	retire                               time.Duration
	private                              int // bytes of the program's own at the beginning of each block
}

// Versions of rings, as PACKET_VERSION has them.
const (
	packetV1 = 0
	packetV2 = 1
	packetV3 = 2
)

// Bits of the status of a slot, a block or a frame.
const (
	statusKernel           = 0
	statusUser             = 1 << 0
	statusLosing           = 1 << 2 // frames were dropped before this one
	statusChecksumNotReady = 1 << 3
	statusBlockTimeout     = 1 << 5
)

// Sizes of struct tpacket2_hdr, tpacket3_hdr and tpacket_block_desc.
const (
	slotHeader   = 32
	frameHeader  = 48
	blockHeader  = 48
	slotAlign    = 16 // TPACKET_ALIGNMENT
	blockAlign   = 8  // V3_ALIGNMENT
	leastLinkLen = 16
)

// defaultRetire is how long a block is open at most if the program does not say.
const defaultRetire = 8 * time.Millisecond

// maxRing bounds a ring, in bytes.
const maxRing = 1 << 30

func alignUp(n, to int) int { return (n + to - 1) / to * to }

// parseRingRequest reads what PACKET_RX_RING is given, and checks it as Linux does. Errors: EINVAL.
func parseRingRequest(version int, b []byte, reserve int) (ringRequest, Errno) {
	size := 16
	if version == packetV3 {
		size = 28
	}
	if len(b) < size {
		return ringRequest{}, syscall.EINVAL
	}
	word := func(i int) int { return int(int32(binary.NativeEndian.Uint32(b[4*i:]))) }
	r := ringRequest{blockSize: word(0), blocks: word(1), frameSize: word(2), frames: word(3)}
	if version == packetV3 {
		r.retire, r.private = time.Duration(uint32(word(4)))*time.Millisecond, word(5)
	}
	if r.retire == 0 {
		r.retire = defaultRetire
	}
	if r.blocks == 0 {
		if r.frames != 0 {
			return ringRequest{}, syscall.EINVAL
		}
		return r, 0
	}
	switch {
	case r.blockSize <= 0 || r.blockSize%mapPage != 0 || r.blocks < 0 || r.blocks > maxRing/r.blockSize,
		r.frameSize < headerRoom(version)+reserve || r.frameSize%slotAlign != 0 || r.frameSize > r.blockSize,
		r.blockSize/r.frameSize*r.blocks != r.frames,
		version == packetV3 && (r.private < 0 || blockHeader+alignUp(r.private, blockAlign)+r.frameSize > r.blockSize):
		return ringRequest{}, syscall.EINVAL
	}
	return r, 0
}

// headerRoom is what stands in front of each frame: a header, and the address of who sent it.
func headerRoom(version int) int {
	if version == packetV3 {
		return frameHeader + sizeLink
	}
	return slotHeader + sizeLink
}

// offsets are where a frame's link header and what is behind it begin, behind the slot's or
// frame's beginning.
func (r *packetRing) offsets(linkHeader int) (mac, net int) {
	room := headerRoom(r.version)
	if r.cooked {
		net = alignUp(room, slotAlign) + leastLinkLen + r.reserve
		return net, net
	}
	net = alignUp(room+max(linkHeader, leastLinkLen), slotAlign) + r.reserve
	return net - linkHeader, net
}

// Map implements mapped: the first gives the ring its memory. Errors: EINVAL unless all of it is
// mapped, ENOMEM.
func (r *packetRing) Map(size int64, reserve fs.Reserve) (fs.Memory, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if size != int64(r.request.blockSize*r.request.blocks) {
		return nil, syscall.EINVAL
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

// prepare writes what is the same of a block for ever: who waits for one may have read it before.
func (r *packetRing) prepare() {
	if r.version != packetV3 {
		return
	}
	for i := range r.request.blocks {
		b := r.block(i)
		binary.NativeEndian.PutUint32(b[0:], packetV3)
		binary.NativeEndian.PutUint32(b[4:], blockHeader)
		binary.NativeEndian.PutUint32(b[16:], uint32(r.firstFrame()))
	}
}

// firstFrame is where the first frame of a block begins.
func (r *packetRing) firstFrame() int { return blockHeader + alignUp(r.request.private, blockAlign) }

// Unmap implements mapped.
func (r *packetRing) Unmap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.maps--; r.maps == 0 {
		r.memory.Free()
		r.memory, r.bytes, r.open = nil, nil, false
	}
}

// Close implements mapped.
func (r *packetRing) Close() error { return nil }

// isMapped reports whether a program has the memory.
func (r *packetRing) isMapped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.maps > 0
}

// waits reports whether the newest slot or block that was handed over is still the program's.
func (r *packetRing) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes == nil {
		return false
	}
	if r.version == packetV3 {
		return r.blockStatus(before(r.next, r.request.blocks)).Load() != statusKernel
	}
	return status(r.slot(before(r.next, r.request.frames))).Load() != statusKernel
}

func before(i, n int) int { return (i + n - 1) % n }

// put writes a frame, and reports whether there was room for it.
func (r *packetRing) put(frame []byte, info *stack.LinkFrame) bool {
	r.mu.Lock()
	ready, ok := false, false
	if r.bytes != nil {
		if r.version == packetV3 {
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

// slot is one of version 2. None goes beyond its block.
func (r *packetRing) slot(i int) []byte {
	q := &r.request
	each := q.blockSize / q.frameSize
	at := i/each*q.blockSize + i%each*q.frameSize
	return r.bytes[at : at+q.frameSize]
}

func (r *packetRing) putInSlot(frame []byte, info *stack.LinkFrame) (ready, ok bool) {
	b := r.slot(r.next)
	if status(b).Load() != statusKernel {
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
	status(b).Store(r.statusOf(info))
	r.next = (r.next + 1) % r.request.frames
	return true, true
}

// frameStatus is what the status of a frame says of it.
func frameStatus(info *stack.LinkFrame) uint32 {
	if info.Partial {
		return statusUser | statusChecksumNotReady
	}
	return statusUser
}

// statusOf is the status of a frame in the ring.
func (r *packetRing) statusOf(info *stack.LinkFrame) uint32 {
	if r.losing {
		return frameStatus(info) | statusLosing
	}
	return frameStatus(info)
}

func (r *packetRing) block(i int) []byte {
	return r.bytes[i*r.request.blockSize : (i+1)*r.request.blockSize]
}

func (r *packetRing) blockStatus(i int) *atomic.Uint32 { return status(r.block(i)[8:]) }

func (r *packetRing) putInBlock(frame []byte, info *stack.LinkFrame) (ready, ok bool) {
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

// beginBlock opens the next block, if the program has given it back.
func (r *packetRing) beginBlock() bool {
	if r.blockStatus(r.next).Load() != statusKernel {
		return false
	}
	r.open, r.at, r.frames = true, r.firstFrame(), 0
	r.blocks++
	number := r.blocks
	r.retire = time.AfterFunc(r.request.retire, func() { r.retired(number) })
	return true
}

// retired hands a block over whose time is over.
func (r *packetRing) retired(number uint64) {
	r.mu.Lock()
	mine := r.open && r.blocks == number
	if mine {
		r.handOver(statusBlockTimeout)
	}
	r.mu.Unlock()
	if mine {
		r.readable()
	}
}

// handOver gives the open block to the program.
func (r *packetRing) handOver(why uint32) {
	r.retire.Stop()
	b := r.block(r.next)
	last := b[r.last:]
	end := time.Unix(int64(binary.NativeEndian.Uint32(last[4:])), int64(binary.NativeEndian.Uint32(last[8:])))
	binary.NativeEndian.PutUint32(last, 0) // it is the last
	binary.NativeEndian.PutUint32(b[12:], uint32(r.frames))
	binary.NativeEndian.PutUint32(b[20:], uint32(r.at))
	binary.NativeEndian.PutUint64(b[24:], r.blocks)
	for i, t := range [...]time.Time{r.first, end} {
		binary.NativeEndian.PutUint32(b[32+8*i:], uint32(t.Unix()))
		binary.NativeEndian.PutUint32(b[36+8*i:], uint32(t.Nanosecond()))
	}
	r.blockStatus(r.next).Store(statusUser | why)
	r.open = false
	r.next = (r.next + 1) % r.request.blocks
}

// drop is for a ring that its socket has no more.
func (r *packetRing) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open {
		r.retire.Stop()
		r.open = false
	}
	r.bytes = nil // the program may still look at its memory
}
