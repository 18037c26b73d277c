//go:build linux

package afpacket

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"loam/link"
)

// TxRing sends frames from memory shared with the kernel: PACKET_TX_RING, version 2
// (Documentation/networking/packet_mmap.rst of the kernel). Only one goroutine at a time may use
// it.
//
// The ring is a circle of slots, each with a status word. A slot passes through these states:
//
//	available     owned by the program: Slot returns it, Put fills it
//	send request  the kernel takes it at the next Kick, in order
//	sending       a buffer of the kernel points into the slot
//	available     the kernel has freed the buffer: the frame has left
//
// Version 3 of the transmit ring offers nothing more. Sending without copying applies only between
// the program and the kernel: the kernel still allocates a buffer header for each frame, and that
// takes most of the time.
type TxRing struct {
	fd     int
	mem    []byte
	stride int    // distance between slots in bytes, a power of two
	mask   uint64 // number of slots minus 1
	header int    // length of the virtio-net header before each frame, or 0
	head   uint64 // number of slots filled since the ring was opened
	tail   uint64 // number of slots whose frames have left
}

// TxConfig describes a transmit ring to open.
type TxConfig struct {
	Interface string
	Slots     int  // number of slots, rounded up to a power of two; default 1024
	Size      int  // longest frame in bytes; default: the longest frame of the interface
	Offloads  bool // frames begin with a virtio-net header of link.VirtioHeaderLen bytes
	Bypass    bool // frames skip the queueing discipline of the kernel
	// Opaque stops the kernel from parsing frames: see Unassigned. Do not use it for frames with
	// offloads other than a header length, or if the kernel must know where the headers are.
	Opaque bool
}

// Unassigned is a reserved EtherType that no protocol uses (RFC 7042 appendix B.2), in network byte
// order. Binding a socket to it saves work when sending. If a packet socket is bound to a protocol,
// the kernel takes its frames for that protocol without looking. Otherwise it reads the EtherType
// and parses the headers of each frame (packet_parse_headers) for queueing disciplines and devices
// that need their positions. Skipping that saves 3 to 5 % of the time to send a short frame over a
// veth. The socket receives nothing, because no host sends such frames.
const Unassigned = 0xffff

// txData is the offset of the frame in a slot: TPACKET2_HDRLEN without the sockaddr_ll.
const txData = 32

// Offsets of the status and length words in struct tpacket2_hdr.
const (
	v2Status, v2Len = 0, 4
)

// OpenTx opens a transmit ring.
func OpenTx(c TxConfig) (*TxRing, error) {
	info, index, err := describe(c.Interface)
	if err != nil {
		return nil, err
	}
	if c.Size == 0 {
		c.Size = info.MaxLen() + 2*4 // room for two VLAN tags
	}
	if c.Slots == 0 {
		c.Slots = 1024
	}
	r := &TxRing{fd: -1}
	if err := r.open(c, index); err != nil {
		r.Close()
		return nil, explain(c.Interface, err)
	}
	return r, nil
}

// open creates the socket, maps the ring and binds the socket. On error, the caller calls Close.
func (r *TxRing) open(c TxConfig, index int) (err error) {
	if r.fd, err = newSocket(); err != nil {
		return err
	}
	if c.Offloads {
		r.header = link.VirtioHeaderLen
	}
	// With PACKET_LOSS, the kernel skips a frame that it rejects instead of stopping there
	// permanently. Frames that are too long do not fit into a slot.
	err = set(r.fd,
		option{"PACKET_VERSION", unix.PACKET_VERSION, unix.TPACKET_V2, true},
		option{"PACKET_LOSS", unix.PACKET_LOSS, 1, true},
		option{"PACKET_VNET_HDR", unix.PACKET_VNET_HDR, 1, c.Offloads},
		option{"PACKET_QDISC_BYPASS", unix.PACKET_QDISC_BYPASS, 1, c.Bypass})
	if err != nil {
		return err
	}
	r.stride = 1 << bits.Len(uint(txData+r.header+c.Size-1))
	slots := 1 << bits.Len(uint(c.Slots-1))
	block := max(r.stride, 1<<16)
	if total := slots * r.stride; total < block {
		slots = block / r.stride
	}
	r.mask = uint64(slots - 1)
	req := unix.TpacketReq{
		Block_size: uint32(block),
		Block_nr:   uint32(slots * r.stride / block),
		Frame_size: uint32(r.stride),
		Frame_nr:   uint32(slots),
	}
	if err := unix.SetsockoptTpacketReq(r.fd, unix.SOL_PACKET, unix.PACKET_TX_RING, &req); err != nil {
		return fmt.Errorf("PACKET_TX_RING of %d slots of %d bytes: %w", slots, r.stride, err)
	}
	if r.mem, err = unix.Mmap(r.fd, 0, slots*r.stride, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return os.NewSyscallError("mmap", err)
	}
	if c.Opaque {
		return bind(r.fd, index, Unassigned)
	}
	return bind(r.fd, index, 0)
}

// Slot returns the room for the next frame, or nil if the ring is full. With offloads, the room
// begins with the virtio-net header.
func (r *TxRing) Slot() []byte {
	at := int(r.head&r.mask) * r.stride
	if loadWord(r.mem, at+v2Status) != unix.TP_STATUS_AVAILABLE {
		return nil
	}
	return r.mem[at+txData : at+r.stride : at+r.stride]
}

// Put marks the slot that Slot returned for sending; its first n bytes are in use. The kernel takes
// it at the next Kick.
func (r *TxRing) Put(n int) {
	at := int(r.head&r.mask) * r.stride
	binary.NativeEndian.PutUint32(r.mem[at+v2Len:], uint32(n))
	storeWord(r.mem, at+v2Status, unix.TP_STATUS_SEND_REQUEST)
	r.head++
}

// PutAgain marks up to n slots for sending with the contents they had before. It returns the number
// of slots that were free.
func (r *TxRing) PutAgain(n int) (put int) {
	for ; put < n; put++ {
		status := int(r.head&r.mask)*r.stride + v2Status
		if loadWord(r.mem, status) != unix.TP_STATUS_AVAILABLE {
			break
		}
		storeWord(r.mem, status, unix.TP_STATUS_SEND_REQUEST)
		r.head++
	}
	return put
}

// Slots returns the number of slots.
func (r *TxRing) Slots() int { return int(r.mask) + 1 }

// Kick makes the kernel send the frames that were put, without blocking. EAGAIN and ENOBUFS mean
// that it did not take all of them: call Kick again.
func (r *TxRing) Kick() error {
	for {
		if err := unix.Send(r.fd, nil, unix.MSG_DONTWAIT); err != unix.EINTR {
			return err
		}
	}
}

// Descriptor returns the file descriptor of the socket, for a caller that issues the kick system
// call itself. The ring keeps ownership.
func (r *TxRing) Descriptor() int { return r.fd }

// Handed returns the number of frames put since the ring was opened.
func (r *TxRing) Handed() uint64 { return r.head }

// Left returns the number of frames that the kernel has finished with.
func (r *TxRing) Left() uint64 {
	for r.tail < r.head && loadWord(r.mem, int(r.tail&r.mask)*r.stride+v2Status) == unix.TP_STATUS_AVAILABLE {
		r.tail++
	}
	return r.tail
}

// Wait blocks until a slot is free or the timeout expires.
func (r *TxRing) Wait(timeout time.Duration) error { return poll(r.fd, unix.POLLOUT, timeout) }

// Close closes the socket and unmaps the ring. Frames that have not left are lost. It may be called
// more than once.
func (r *TxRing) Close() error {
	if r.fd < 0 {
		return nil
	}
	if r.mem != nil {
		unix.Munmap(r.mem)
		r.mem = nil
	}
	err := unix.Close(r.fd)
	r.fd = -1
	return err
}

// poll waits for events on the descriptor. The timeout is rounded up to whole milliseconds.
func poll(fd int, events int16, timeout time.Duration) error {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	_, err := unix.Poll(fds, int((timeout+time.Millisecond-1)/time.Millisecond))
	if err == unix.EINTR {
		return nil
	}
	return os.NewSyscallError("poll", err)
}
