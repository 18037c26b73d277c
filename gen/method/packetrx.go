//go:build linux

package method

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"loam/gen/hwtime"
	"loam/link"
	"loam/link/fd"
	"loam/wire"
)

// packetReceiver is the receiving half of the method packet. One recvmmsg(2) copies a batch of frames.
type packetReceiver struct {
	fd int
	cutter
	slots    []byte // buffers, each for a virtio-net header and a frame
	size     int
	messages *fd.Messages
	dropped  atomic.Uint64
	stamps   *hwtime.Stamps // nil: the kernel's receive times are used
}

// auxSpace is the size in bytes of the ancillary data of one frame. It consists of three items, each after a header of
// 16 bytes: the VLAN tag that the kernel has removed (struct tpacket_auxdata), the kernel's receive time (struct
// timespec), and the device's receive time (the last of three struct timespec).
const (
	cmsgHeader = 16
	auxdataLen = 20
	timespec   = 16
	auxSpace   = cmsgHeader + 24 + cmsgHeader + timespec + cmsgHeader + 3*timespec
)

// longest is the size in bytes of the largest frame that a receiver accepts. Such a frame holds the data of several TCP
// segments, because Linux has not divided it yet (segmentation offload).
const longest = 1<<16 + wire.EthernetLen

// listenPacket opens a receiver for the method "packet".
func listenPacket(c Config) (Receiver, error) {
	c = c.WithDefaults()
	s, err := packetSocket(c, allProtocols,
		option{"PACKET_VNET_HDR", unix.PACKET_VNET_HDR, 1},
		option{"PACKET_IGNORE_OUTGOING", unix.PACKET_IGNORE_OUTGOING, 1},
		option{"PACKET_AUXDATA", unix.PACKET_AUXDATA, 1})
	if err != nil {
		return nil, err
	}
	if err = prepareToReceive(s, c); err != nil {
		unix.Close(s)
		return nil, explain(c, "packet socket", err)
	}
	stamps, err := deviceTime(c)
	if err != nil {
		unix.Close(s)
		return nil, err
	}
	r := &packetReceiver{fd: s, stamps: stamps, cutter: cutter{rules: c.Match}, size: link.VirtioHeaderLen + longest, messages: fd.NewMessages(c.Batch, auxSpace)}
	r.slots = make([]byte, c.Batch*r.size)
	return r, nil
}

// prepareToReceive sets the receive buffer size of a packet socket. If c requests them, it also enables time stamps and
// promiscuous mode.
func prepareToReceive(s int, c Config) error {
	const buffer = 32 << 20
	if unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
		unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
	}
	if err := unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return err
	}
	if c.DeviceTime {
		const times = unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE
		if err := unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, times); err != nil {
			return err
		}
	}
	if !c.Promiscuous {
		return nil
	}
	index, err := interfaceIndex(c.Interface)
	if err != nil {
		return err
	}
	// The kernel counts the requests for promiscuous mode, and removes this one when the socket is closed.
	m := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
	return unix.SetsockoptPacketMreq(s, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m)
}

// Receive implements Receiver.
func (r *packetReceiver) Receive(timeout time.Duration, got func(frame []byte, at int64)) (int, error) {
	n, err := r.read()
	if err == unix.EAGAIN && timeout > 0 {
		if err := readable(r.fd, timeout); err != nil {
			return 0, err
		}
		n, err = r.read()
	}
	switch err {
	case nil:
	case unix.EAGAIN, unix.ENETDOWN: // ENETDOWN is reported once; frames arrive again after the link has come up
		return 0, nil
	default:
		return 0, err
	}
	count := 0
	for i := range n {
		length, whole := r.messages.Length(i)
		if length < link.VirtioHeaderLen+wire.EthernetLen {
			continue
		}
		slot := r.slots[i*r.size:][:length]
		o, ok := link.ParseOffload(slot, length-link.VirtioHeaderLen)
		if !ok || !whole {
			o = link.Offload{}
		}
		frame, at, device := untag(slot[link.VirtioHeaderLen-wire.VLANTagLen:], r.messages.Control(i))
		if device != 0 && r.stamps != nil {
			at = r.stamps.System(device)
		}
		count += r.deliver(frame, o, at, got)
	}
	return count, nil
}

func (r *packetReceiver) read() (int, error) {
	for i := range r.messages.Len() {
		r.messages.Set(i, r.slots[i*r.size:][:r.size])
	}
	return r.messages.Receive(uintptr(r.fd), r.messages.Len())
}

// untag returns the frame in slot, before which there is room for a VLAN tag. If control contains a tag that the kernel
// has removed, untag inserts the tag again. The result at is the receive time by the kernel's clock, and the result
// device is the receive time by the device's clock; each is 0 if control does not contain it.
func untag(slot []byte, control []byte) (frame []byte, at, device int64) {
	frame = slot[wire.VLANTagLen:]
	for len(control) >= cmsgHeader {
		size := binary.NativeEndian.Uint64(control)
		level, kind := binary.NativeEndian.Uint32(control[8:]), binary.NativeEndian.Uint32(control[12:])
		if size < cmsgHeader || size > uint64(len(control)) {
			break
		}
		data := control[cmsgHeader:size]
		switch {
		case level == unix.SOL_SOCKET && kind == unix.SCM_TIMESTAMPNS && len(data) >= timespec:
			at = nanoseconds(data)
		case level == unix.SOL_SOCKET && kind == unix.SCM_TIMESTAMPING && len(data) >= 3*timespec:
			device = nanoseconds(data[2*timespec:])
		case level == unix.SOL_PACKET && kind == unix.PACKET_AUXDATA && len(data) >= auxdataLen:
			if putBack(slot, data) {
				frame = slot
			}
		}
		control = control[min(uint64(len(control)), (size+7)&^7):]
	}
	return frame, at, device
}

// nanoseconds decodes a struct timespec.
func nanoseconds(b []byte) int64 {
	return int64(binary.NativeEndian.Uint64(b))*1e9 + int64(binary.NativeEndian.Uint64(b[8:]))
}

// putBack inserts the tag in a struct tpacket_auxdata after the Ethernet addresses, which it moves towards the front.
// It returns false if there is no tag.
func putBack(slot, aux []byte) bool {
	const addresses = 2 * len(wire.MAC{})
	status := binary.NativeEndian.Uint32(aux)
	if status&unix.TP_STATUS_VLAN_VALID == 0 {
		return false
	}
	tci, tpid := binary.NativeEndian.Uint16(aux[16:]), binary.NativeEndian.Uint16(aux[18:])
	if status&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
		tpid = uint16(wire.TypeVLAN)
	}
	copy(slot, slot[wire.VLANTagLen:][:addresses])
	binary.BigEndian.PutUint16(slot[addresses:], tpid)
	binary.BigEndian.PutUint16(slot[addresses+2:], tci)
	return true
}

// Drops implements Receiver.
func (r *packetReceiver) Drops() uint64 {
	// The kernel resets its counter whenever it is read, so the counts are added up.
	s, err := unix.GetsockoptTpacketStats(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return r.dropped.Load()
	}
	return r.dropped.Add(uint64(s.Drops))
}

// Close implements Receiver.
func (r *packetReceiver) Close() error {
	r.Drops()
	return errors.Join(unix.Close(r.fd), closeStamps(r.stamps))
}
