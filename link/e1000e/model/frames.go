package model

// sendAll sends frames until the ring is empty or the other card has no buffer.
func (c *Card) sendAll() {
	const enable = 2
	for *c.reg(send)&enable != 0 && !c.mute && !c.gone && c.plug.Master() {
		if c.whole {
			if !c.sendNext() {
				return
			}
			continue
		}
		head := *c.reg(sendRing + ringHead)
		if head == *c.reg(sendRing + ringTail) {
			return
		}
		b := c.descriptor(sendRing, head)
		first, second := word(b, 0).Load(), word(b, 8).Load()
		const data, last, segment = 1 << 20, 1 << 24, 1 << 26
		if second&data == 0 {
			if second&segment != 0 {
				c.cutting = context{first, second}
			} else {
				c.context = context{first, second}
			}
		} else {
			if len(c.frame) == 0 {
				c.options = second
			}
			c.frame = append(c.frame, c.plug.Memory(first, int(second&0xfffff))...)
			c.whole = second&last != 0
			c.sent = 0
		}
		if !c.whole {
			*c.reg(sendRing + ringHead) = c.advance(sendRing, head)
		}
	}
}

// sendNext sends the frame, or its next segment. It returns false if the other card has no buffer.
func (c *Card) sendNext() bool {
	const cut, sumIP, sum = 1 << 26, 1 << 40, 1 << 41
	out, done := c.frame, true
	if c.options&cut != 0 {
		out, done = c.cutNext()
	} else if c.options&sum != 0 && c.sent == 0 {
		c.Sums++
		c.sent = 1 // the sum is inserted only once, even if the frame has to wait
		at := c.context.first
		putSum(c.frame, int(at>>32&0xff), int(at>>40&0xff))
	}
	lie, number := Truth, uint64(0)
	if c.peer.Next != nil {
		lie, number = c.peer.Next()
	}
	if !c.peer.deliver(out, lie, number) {
		return false
	}
	if !done {
		c.sent += c.mss()
		return true
	}
	head := *c.reg(sendRing + ringHead)
	c.whole, c.frame, c.sent = false, c.frame[:0], 0
	if lie == Unsent {
		c.mute = true
		return true
	}
	b := c.descriptor(sendRing, head)
	word(b, 8).Store(word(b, 8).Load() | 1<<32)
	*c.reg(sendRing + ringHead) = c.advance(sendRing, head)
	if c.kind.Vectors > 0 {
		c.setCauses(causeQueueTx)
	} else {
		c.setCauses(causeSent)
	}
	return true
}

func (c *Card) mss() int { return int(c.cutting.second >> 48) }

// cutNext returns the next segment of the frame. done means that it is the last one.
func (c *Card) cutNext() (segment []byte, done bool) {
	at := c.cutting.first
	header, ip, tcp := int(c.cutting.second>>40&0xff), int(at&0xff), int(at>>32&0xff)
	payload := int(c.cutting.second & 0xfffff)
	n := min(c.mss(), payload-c.sent)
	done = c.sent+n == payload
	b := append(append(c.segment[:0], c.frame[:header]...), c.frame[header+c.sent:][:n]...)
	c.segment = b
	if c.cutting.second&(1<<25) != 0 {
		be.PutUint16(b[ip+2:], uint16(len(b)-ip))
		be.PutUint16(b[ip+4:], be.Uint16(b[ip+4:])+uint16(c.sent/c.mss()))
		putSum(b[:tcp], ip, int(at>>8&0xff))
	} else {
		be.PutUint16(b[ip+4:], uint16(len(b)-ip-40))
	}
	be.PutUint32(b[tcp+4:], be.Uint32(b[tcp+4:])+uint32(c.sent))
	if !done {
		b[tcp+13] &^= 9 // FIN, PSH
	} else {
		c.Cut++
	}
	field := int(at >> 40 & 0xff)
	be.PutUint16(b[field:], fold(uint32(be.Uint16(b[field:]))+uint32(len(b)-tcp)))
	putSum(b, tcp, field)
	return b, done
}

// putSum inserts the checksum of b from start to its end.
func putSum(b []byte, start, field int) { be.PutUint16(b[field:], ^total(b[start:])) }

// total returns the ones' complement sum of b.
func total(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum = uint32(fold(sum + uint32(be.Uint16(b))))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	return fold(sum)
}

func fold(v uint32) uint16 {
	v = v>>16 + v&0xffff
	return uint16(v + v>>16)
}

const bufferLen = 2048

// deliver receives a frame. It returns false if there are too few buffers.
func (c *Card) deliver(b []byte, lie Lie, number uint64) bool {
	const enable, long, least, longest = 1 << 1, 1 << 5, 60, 1522
	control := *c.reg(receive)
	if c.down || c.gone || control&enable == 0 || !c.plug.Master() || !c.accepts(b) || len(b) > longest && control&long == 0 {
		return true // it is lost
	}
	if lie == Vanish {
		c.gone = true
		return true
	}
	head, tail, size := *c.reg(receiveRing + ringHead), *c.reg(receiveRing + ringTail), *c.reg(receiveRing + ringLen)/16
	buffers := uint32(max(least, len(b))+bufferLen-1) / bufferLen
	if (tail+size-head)%size < buffers {
		return false
	}
	if lie == Ahead {
		head = c.advance(receiveRing, head)
	}
	const done, last = 1 << 32, 1 << 33
	state := sums(b) | last
	for n := max(least, len(b)); n > 0; n -= bufferLen {
		d := c.descriptor(receiveRing, head)
		to := c.plug.Memory(word(d, 0).Load(), bufferLen)
		clear(to[copy(to, b):max(least, min(len(b), bufferLen))])
		second := uint64(min(n, bufferLen)) | done
		if n <= bufferLen {
			second |= state
		}
		switch lie {
		case Word:
			second = number
		case Endless:
			second &^= last
		}
		word(d, 8).Store(second)
		b = b[min(len(b), bufferLen):]
		head = c.advance(receiveRing, head)
	}
	*c.reg(receiveRing + ringHead) = head
	c.report(lie, number, size)
	return true
}

// report raises the interrupt for a received frame.
func (c *Card) report(lie Lie, number uint64, size uint32) {
	switch lie {
	case Quiet:
		return
	case Spurious:
		c.setCauses(^uint32(0) >> 1) // all ones would mean that the card is gone
	case All:
		for i := range size {
			word(c.descriptor(receiveRing, i), 8).Store(number)
		}
	}
	if c.kind.Vectors > 0 {
		c.setCauses(causeQueueRx)
	} else {
		c.setCauses(causeReceived)
	}
}

// accepts reports whether a frame is for the card.
func (c *Card) accepts(b []byte) bool {
	const unicast, multicast, broadcast = 1 << 3, 1 << 4, 1 << 15
	control := *c.reg(receive)
	to := [6]byte(b)
	switch {
	case to == [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}:
		return control&broadcast != 0
	case to[0]&1 != 0:
		return control&multicast != 0
	}
	low, high := le.Uint32(b), uint32(le.Uint16(b[4:]))|1<<31
	return control&unicast != 0 || low == *c.reg(addressLow) && high == *c.reg(addressHigh)
}

// sums returns the part of a receive descriptor about the checksum of a frame, without VLAN tags and extension headers.
func sums(b []byte) uint64 {
	const checked, wrong = 1 << 37, 1 << 45
	var protocol byte
	var segment, addresses []byte
	switch {
	case len(b) < 14+40:
		return 0
	case be.Uint16(b[12:]) == 0x0800:
		ip := b[14:]
		n := int(be.Uint16(ip[2:]))
		if ip[0] != 0x45 || n > len(ip) || n < 28 || be.Uint16(ip[6:])&0x3fff != 0 {
			return 0
		}
		protocol, addresses, segment = ip[9], ip[12:20], ip[20:n]
	case be.Uint16(b[12:]) == 0x86dd:
		ip := b[14:]
		n := 40 + int(be.Uint16(ip[4:]))
		if n > len(ip) {
			return 0
		}
		protocol, addresses, segment = ip[6], ip[8:40], ip[40:n]
	}
	if protocol != 6 && protocol != 17 {
		return 0
	}
	v := uint32(total(addresses)) + uint32(total(segment)) + uint32(protocol) + uint32(len(segment))
	if fold(v) != 0xffff {
		return checked | wrong
	}
	return checked
}
