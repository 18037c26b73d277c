//go:build linux

package afpacket

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"loam/link"
	"loam/wire"
)

// RxRing receives frames in memory shared with the kernel: PACKET_RX_RING, version 3. Only one
// goroutine at a time may use it, except for Drops.
//
// The ring is a circle of blocks. The kernel fills a block with frames of any length, one after
// another. It hands the block over when the block is full, or RxConfig.Retire after its first
// frame. Once all frames of the block have been read, the block is returned to the kernel. So a
// frame costs no system call, and no slot of maximum length; the price is the delay of up to
// Retire.
//
// Because blocks are also handed over by time, the ring holds at most Blocks times Retire of light
// traffic, however large the blocks are. A reader that stays away longer loses frames. Therefore
// blocks are many and small.
type RxRing struct {
	fd      int
	mem     []byte
	block   int // size of a block in bytes
	blocks  int
	current int  // index of the block that the program is reading
	ours    bool // the kernel has passed the current block to the program
	left    int  // frames of the block not yet returned by Next
	at      int  // offset in mem of the next frame of the block
	header  int  // length of the virtio-net header before each frame, or 0
	dropped atomic.Uint64
}

// RxConfig describes a receive ring to open.
type RxConfig struct {
	Interface   string
	Blocks      int           // number of blocks; 0: 128
	BlockSize   int           // bytes, a power of two; default 128 kB, twice the longest frame
	Retire      time.Duration // longest time that a frame waits for its block to fill, in whole milliseconds; default 1 ms
	Offloads    bool          // frames may be longer than the MTU and unfinished: see Received.Offload
	Promiscuous bool
	Hardware    bool // use time stamps of the network card where it takes them: see Received.Device
}

// Received is one frame in the ring. It is valid until the next call of Next.
type Received struct {
	Frame   []byte
	Wire    int    // length on the wire in bytes; larger than len(Frame) if the frame was truncated
	At      int64  // time of arrival in nanoseconds since 1970
	Device  bool   // At is from the clock of the network card
	Offload []byte // virtio-net header of the frame; empty without RxConfig.Offloads
}

// Offsets in struct tpacket_block_desc and struct tpacket3_hdr.
const (
	blockStatus, blockFrames, blockFirst = 8, 12, 16

	v3Next, v3Sec, v3Nsec, v3Caplen, v3Len, v3Status, v3Mac, v3TCI, v3TPID = 0, 4, 8, 12, 16, 20, 24, 32, 36
)

// OpenRx opens a receive ring.
func OpenRx(c RxConfig) (*RxRing, error) {
	_, index, err := describe(c.Interface)
	if err != nil {
		return nil, err
	}
	r := &RxRing{fd: -1}
	if err = r.open(c); err == nil {
		err = receive(r.fd, index, Config{Promiscuous: c.Promiscuous}, nil)
	}
	if err != nil {
		r.Close()
		return nil, explain(c.Interface, err)
	}
	return r, nil
}

// open creates the socket and maps the ring, without binding the socket. On error, the caller calls
// Close.
func (r *RxRing) open(c RxConfig) (err error) {
	if r.fd, err = newSocket(); err != nil {
		return err
	}
	if c.Offloads {
		r.header = link.VirtioHeaderLen
	}
	err = set(r.fd,
		option{"PACKET_VERSION", unix.PACKET_VERSION, unix.TPACKET_V3, true},
		option{"PACKET_VNET_HDR", unix.PACKET_VNET_HDR, 1, c.Offloads},
		option{"PACKET_IGNORE_OUTGOING", unix.PACKET_IGNORE_OUTGOING, 1, true},
		option{"PACKET_TIMESTAMP", unix.PACKET_TIMESTAMP, unix.SOF_TIMESTAMPING_RAW_HARDWARE, c.Hardware},
		option{"PACKET_RESERVE", unix.PACKET_RESERVE, 16, true}) // 16 bytes: room for a VLAN tag
	if err != nil {
		return err
	}
	r.blocks, r.block = c.Blocks, c.BlockSize
	if r.blocks == 0 {
		r.blocks = 128
	}
	if r.block == 0 {
		r.block = 1 << 17
	}
	const frame = 2048 // unused by version 3, but must divide the block size
	req := unix.TpacketReq3{
		Block_size:     uint32(r.block),
		Block_nr:       uint32(r.blocks),
		Frame_size:     frame,
		Frame_nr:       uint32(r.blocks * (r.block / frame)),
		Retire_blk_tov: uint32(max(1, c.Retire.Milliseconds())),
	}
	if err := unix.SetsockoptTpacketReq3(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return fmt.Errorf("PACKET_RX_RING of %d blocks of %d bytes: %w", r.blocks, r.block, err)
	}
	r.mem, err = unix.Mmap(r.fd, 0, r.blocks*r.block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	return os.NewSyscallError("mmap", err)
}

// Next returns the next received frame. It does not block; ok is false if there is none.
func (r *RxRing) Next() (f Received, ok bool) {
	for r.left == 0 {
		if r.ours {
			r.giveBack()
		}
		base := r.current * r.block
		if loadWord(r.mem, base+blockStatus)&unix.TP_STATUS_USER == 0 {
			return f, false
		}
		r.ours = true
		r.left = int(r.word(base + blockFrames))
		r.at = base + int(r.word(base+blockFirst))
	}
	f = r.read(r.at)
	r.at += int(r.word(r.at + v3Next))
	r.left--
	return f, true
}

func (r *RxRing) giveBack() {
	storeWord(r.mem, r.current*r.block+blockStatus, unix.TP_STATUS_KERNEL)
	r.ours = false
	r.current++
	if r.current == r.blocks {
		r.current = 0
	}
}

func (r *RxRing) word(at int) uint32 { return binary.NativeEndian.Uint32(r.mem[at:]) }
func (r *RxRing) half(at int) uint16 { return binary.NativeEndian.Uint16(r.mem[at:]) }

// read returns the frame whose header is at offset h.
func (r *RxRing) read(h int) (f Received) {
	start, length := h+int(r.half(h+v3Mac)), int(r.word(h+v3Caplen))
	f.At = int64(r.word(h+v3Sec))*1e9 + int64(r.word(h+v3Nsec))
	f.Device = r.word(h+v3Status)&unix.TP_STATUS_TS_RAW_HARDWARE != 0
	f.Wire = int(r.word(h + v3Len))
	f.Offload = r.mem[start-r.header : start]
	if t := newTag(r.word(h+v3Status), r.half(h+v3TCI), r.half(h+v3TPID)); t.valid && length >= wire.EthernetLen {
		if r.header > 0 { // the VLAN tag is written over the offload header, which is therefore copied
			f.Offload = append([]byte(nil), f.Offload...)
		}
		start, length, f.Wire = start-wire.VLANTagLen, length+wire.VLANTagLen, f.Wire+wire.VLANTagLen
		t.write(r.mem[start:])
	}
	f.Frame = r.mem[start:][:length]
	return f
}

// Wait blocks until a frame may have arrived or the timeout expires.
func (r *RxRing) Wait(timeout time.Duration) error { return poll(r.fd, unix.POLLIN, timeout) }

// Drops returns the number of frames dropped because the ring was full. Any goroutine may call it
// while the ring is open.
func (r *RxRing) Drops() uint64 {
	// Each query resets the kernel's counter.
	s, err := unix.GetsockoptTpacketStatsV3(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return r.dropped.Load()
	}
	return r.dropped.Add(uint64(s.Drops))
}

// Close closes the socket and unmaps the ring. It may be called more than once.
func (r *RxRing) Close() error {
	if r.fd < 0 {
		return nil
	}
	r.Drops()
	if r.mem != nil {
		unix.Munmap(r.mem)
		r.mem = nil
	}
	err := unix.Close(r.fd)
	r.fd = -1
	return err
}
