package stack

import (
	"encoding/binary"

	"loam/link"
	"loam/wire"
)

// Copies of frames for LinkConns. A frame is copied when a receiver has read it, or just before it is passed to a device. A
// frame that must wait for room in the device is copied when it starts to wait. Without LinkConns, the cost is one pointer
// load per received batch and per sent frame.

// headerLen returns the length of the link header that sockets see, in bytes. Loopback
// frames have no header; as on Linux, sockets see a header of zeros.
func (i *Interface) headerLen() int {
	if i.medium == link.Ethernet || i.loopback {
		return wire.EthernetLen
	}
	return 0
}

// tapIncoming delivers copies of a received frame.
func (s *Stack) tapIncoming(counts *tally, ifc *Interface, f *link.Frame) {
	info := LinkFrame{Interface: ifc.index, Partial: f.NeedsChecksum}
	b := f.Bytes()
	if ifc.medium == link.Ethernet {
		if len(b) < wire.EthernetLen {
			return
		}
		info.Kind = ifc.kindOfFrame(wire.MAC(b[:6]))
	}
	s.tap(counts, ifc, f, info, nil)
}

// tapOutgoing delivers copies of a frame that is being sent, except to the socket that sends it.
func (s *Stack) tapOutgoing(counts *tally, ifc *Interface, f *link.Frame, sender *LinkConn) {
	s.tap(counts, ifc, f, LinkFrame{Kind: FrameOutgoing, Interface: ifc.index, Partial: f.NeedsChecksum}, sender)
}

// tap delivers copies of a frame to all matching sockets except the one that sends it.
func (s *Stack) tap(counts *tally, ifc *Interface, f *link.Frame, info LinkFrame, sender *LinkConn) {
	info.at = s.now()
	info.Type = typeOfFrame(ifc, f.Bytes())
	if ifc.medium == link.Ethernet && f.Len() >= wire.EthernetLen {
		info.From = wire.MAC(f.Bytes()[6:12])
	}
	for _, c := range s.links() {
		if c != sender && c.receives(ifc, &info) {
			c.input(counts, ifc, f.Bytes(), info)
		}
	}
}

// kindOfFrame classifies a destination address.
func (i *Interface) kindOfFrame(to wire.MAC) FrameKind {
	switch {
	case to == i.mac:
		return FrameToHost
	case to == wire.Broadcast:
		return FrameToAll
	case to.IsMulticast():
		return FrameToGroup
	}
	return FrameToOther
}

// typeOfFrame returns the type of a frame after its VLAN tags.
func typeOfFrame(ifc *Interface, b []byte) wire.EtherType {
	if ifc.medium != link.Ethernet {
		return typeOfIP(b)
	}
	for at := 12; at+2 <= len(b); at += tagLen {
		switch t := wire.EtherType(binary.BigEndian.Uint16(b[at:])); {
		case t == wire.TypeVLAN || t == wire.TypeQinQ:
		case t < wire.MinEtherType:
			return LinkLLC
		default:
			return t
		}
	}
	return LinkLLC
}

// receives reports whether the socket receives a frame. As on Linux, sent frames are only
// delivered to sockets bound to LinkAll.
func (c *LinkConn) receives(ifc *Interface, info *LinkFrame) bool {
	b := c.bound.Load()
	switch {
	case b.on != nil && b.on != ifc:
		return false
	case info.Kind == FrameOutgoing:
		return b.kind == LinkAll && !c.ignoreOutgoing.Load()
	}
	return b.kind == LinkAll || b.kind == info.Type
}

// input delivers a copy of a frame to the socket, after the filter.
func (c *LinkConn) input(counts *tally, ifc *Interface, b []byte, info LinkFrame) {
	made := 0 // length of the header that the frame lacks, in bytes
	switch header := ifc.headerLen(); {
	case c.cooked && ifc.medium == link.Ethernet:
		b = b[min(header, len(b)):]
	case !c.cooked:
		info.Header = header
		if ifc.medium != link.Ethernet {
			made = header
		}
	}
	if made+len(b) > link.MaxFrame {
		counts.count(LinkOverflow)
		return
	}
	f := link.NewFrame(made + len(b))
	if made > 0 {
		clear(f.Bytes()[:made])
		binary.BigEndian.PutUint16(f.Bytes()[made-2:], uint16(info.Type))
	}
	copy(f.Bytes()[made:], b)
	info.WireLen = f.Len()
	if filter := c.filter.Load(); filter != nil {
		n := int((*filter)(f.Bytes()))
		if n == 0 {
			counts.count(LinkFiltered)
			f.Free()
			return
		}
		f.Resize(min(n, f.Len()))
	}
	info.Len = f.Len()
	c.received.Add(1)
	if !c.take(f, &info) {
		c.overflew.Add(1)
		counts.count(LinkOverflow)
		return
	}
	counts.count(LinkReceived)
}

// take passes a frame to the sink or the receive buffer. It takes ownership of the frame
// and returns false if there was no room.
func (c *LinkConn) take(f *link.Frame, info *LinkFrame) bool {
	if sink := c.sink.Load(); sink != nil {
		defer f.Free()
		return (*sink)(f.Bytes(), info)
	}
	if !c.queue.Put(f, *info) {
		f.Free()
		return false
	}
	c.readers.Ring()
	c.reportEvents(Readable)
	return true
}
