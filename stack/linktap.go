package stack

import (
	"encoding/binary"

	"loam/link"
	"loam/wire"
)

// What LinkConns are told of: each frame as a receiver has read it, and as it is about to be
// given to a device. A frame that waits for room is told of when it begins to wait. Where
// nobody listens, that is one look at a pointer for each batch that arrives and each frame
// that leaves.

// headerLen is how long the link's header is that sockets see, in bytes. Loopback frames
// have none, and are shown with one of zeros, as on Linux.
func (i *Interface) headerLen() int {
	if i.medium == link.Ethernet || i.loopback {
		return wire.EthernetLen
	}
	return 0
}

// tapIncoming gives the sockets copies of a frame that has arrived.
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

// tapOutgoing gives them copies of one that is sent, but for the socket that sends it.
func (s *Stack) tapOutgoing(counts *tally, ifc *Interface, f *link.Frame, by *LinkConn) {
	s.tap(counts, ifc, f, LinkFrame{Kind: FrameOutgoing, Interface: ifc.index, Partial: f.NeedsChecksum}, by)
}

func (s *Stack) tap(counts *tally, ifc *Interface, f *link.Frame, info LinkFrame, by *LinkConn) {
	info.at = s.now()
	info.Type = typeOfFrame(ifc, f.Bytes())
	if ifc.medium == link.Ethernet && f.Len() >= wire.EthernetLen {
		info.From = wire.MAC(f.Bytes()[6:12])
	}
	for _, c := range s.links() {
		if c != by && c.hears(ifc, &info) {
			c.input(counts, ifc, f.Bytes(), info)
		}
	}
}

// kindOfFrame says for whom a frame to a station is.
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

// typeOfFrame finds the type behind a frame's tags.
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

// hears reports whether the socket wants a frame. What is sent is for those alone that hear
// all frames, as on Linux.
func (c *LinkConn) hears(ifc *Interface, info *LinkFrame) bool {
	b := c.bound.Load()
	switch {
	case b.on != nil && b.on != ifc:
		return false
	case info.Kind == FrameOutgoing:
		return b.kind == LinkAll && !c.ignoreOutgoing.Load()
	}
	return b.kind == LinkAll || b.kind == info.Type
}

// input gives the socket a copy of a frame.
func (c *LinkConn) input(counts *tally, ifc *Interface, b []byte, info LinkFrame) {
	made := 0 // bytes of the header that the frame does not have
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

// take gives a frame to who waits for it. It owns the frame; false: there was no room.
func (c *LinkConn) take(f *link.Frame, info *LinkFrame) bool {
	if sink := c.sink.Load(); sink != nil {
		defer f.Free()
		return (*sink)(f.Bytes(), info)
	}
	if !c.queue.put(f, *info) {
		f.Free()
		return false
	}
	c.tell(Readable)
	return true
}
