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

// TxRing sends frames out of memory that is shared with the kernel:
// PACKET_TX_RING, version 2 (Documentation/networking/packet_mmap.rst of the
// kernel). It is used by one goroutine.
//
// The ring is a circle of slots, each with a status word. A slot goes round:
//
//	available     ours: Slot returns it, Put fills it
//	send request  the kernel takes it at the next Kick, in order
//	sending       in a buffer of the kernel that points into the slot
//	available     the kernel has freed that buffer: the frame has left
//
// Version 3 of the transmit ring has nothing that this lacks. "Zero copy" means
// between here and the kernel only: each frame still gets a buffer header of the
// kernel, which is what the time goes to.
type TxRing struct {
	fd     int
	mem    []byte
	stride int    // from slot to slot, a power of two
	mask   uint64 // slots - 1
	header int    // virtio-net header in front of each frame, or 0
	head   uint64 // slots filled since the start
	tail   uint64 // slots that have left
}

// TxConfig says what ring to open.
type TxConfig struct {
	Interface string
	Slots     int  // rounded up to a power of two; default 1024
	Size      int  // longest frame; default: that of the interface
	Offloads  bool // frames begin with a virtio-net header of link.VirtioHeaderLen bytes
	Bypass    bool // go round the queueing discipline
	// Opaque has the kernel not look into frames: see Unassigned. It is not for frames
	// with offloads other than a header length, nor for those whose sender relies on
	// the kernel's knowing where their headers are.
	Opaque bool
}

// Unassigned is an EtherType that nobody has (RFC 7042 appendix B.2: reserved). A
// packet socket that is bound to a protocol has the kernel take its frames for that,
// whatever they are; one that is not has it read the EtherType and walk through the
// headers of each frame (packet_parse_headers), for queueing disciplines and devices
// that want to know where they are. Bound to this one, a socket saves that walk: 3 to
// 5 % of a short frame's way out over veth. It receives nothing, since nobody sends
// such frames. It is in network byte order.
const Unassigned = 0xffff

// txData is where the frame begins in a slot: TPACKET2_HDRLEN without the
// sockaddr_ll.
const txData = 32

// Status words of version 2: offsets in struct tpacket2_hdr.
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
		c.Size = info.MaxLen() + 2*4 // tags
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

func (r *TxRing) open(c TxConfig, index int) (err error) {
	if r.fd, err = newSocket(); err != nil {
		return err
	}
	if c.Offloads {
		r.header = link.VirtioHeaderLen
	}
	// With PACKET_LOSS the kernel skips a frame that it does not like, instead of
	// stopping there for good; Put lets none pass that is too long.
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

// Slot returns the place for the next frame, behind room for the virtio-net
// header if there is one in front; nil if the ring is full.
func (r *TxRing) Slot() []byte {
	at := int(r.head&r.mask) * r.stride
	if loadWord(r.mem, at+v2Status) != unix.TP_STATUS_AVAILABLE {
		return nil
	}
	return r.mem[at+txData : at+r.stride : at+r.stride]
}

// Put marks the first n bytes of the slot that Slot returned for sending.
func (r *TxRing) Put(n int) {
	at := int(r.head&r.mask) * r.stride
	binary.NativeEndian.PutUint32(r.mem[at+v2Len:], uint32(n))
	storeWord(r.mem, at+v2Status, unix.TP_STATUS_SEND_REQUEST)
	r.head++
}

// PutAgain marks up to n slots for sending as they are, each with what was sent from
// it before, and returns how many were free.
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

// Slots is how many slots there are.
func (r *TxRing) Slots() int { return int(r.mask) + 1 }

// Kick has the kernel send what was put, without waiting. EAGAIN and ENOBUFS mean
// that it could not take all: kick again.
func (r *TxRing) Kick() error {
	for {
		if err := unix.Send(r.fd, nil, unix.MSG_DONTWAIT); err != unix.EINTR {
			return err
		}
	}
}

// Descriptor is that of the socket, for who kicks by a call of his own.
func (r *TxRing) Descriptor() int { return r.fd }

// Handed is how many frames have been put since the ring was opened.
func (r *TxRing) Handed() uint64 { return r.head }

// Left is how many frames the kernel has let go of.
func (r *TxRing) Left() uint64 {
	for r.tail < r.head && loadWord(r.mem, int(r.tail&r.mask)*r.stride+v2Status) == unix.TP_STATUS_AVAILABLE {
		r.tail++
	}
	return r.tail
}

// Wait waits until a slot is free or the timeout is over.
func (r *TxRing) Wait(timeout time.Duration) error { return poll(r.fd, unix.POLLOUT, timeout) }

// Close ends the ring. Frames that have not left are lost.
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

// poll waits for an event of the descriptor.
func poll(fd int, events int16, timeout time.Duration) error {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	_, err := unix.Poll(fds, int((timeout+time.Millisecond-1)/time.Millisecond))
	if err == unix.EINTR {
		return nil
	}
	return os.NewSyscallError("poll", err)
}
