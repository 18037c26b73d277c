package model

import "sync"

// Wire connects two network cards. A frame that one card sends, including its virtio header, is received by the other
// card on the queue pair with the same number. The wire has a limited capacity: when it is full, a card stops sending
// until the other card has received frames.
type Wire struct {
	A, B *Device
}

// NetConfig returns the configuration space of a network card with pairs queue pairs (virtio 1.2 section 5.1.4).
func NetConfig(mac [6]byte, pairs, mtu uint16) []byte {
	b := append(make([]byte, 0, 12), mac[:]...)
	for _, v := range []uint16{1, pairs, mtu} {
		b = le.AppendUint16(b, v)
	}
	return b
}

// NewWire returns two connected cards. a and b are their configuration spaces. Each card has to be added to a machine
// with NetQueues(pairs) queues.
func NewWire(features uint64, a, b []byte, pairs int) *Wire {
	w := &Wire{A: &Device{Kind: 1, Features: features, Config: a}, B: &Device{Kind: 1, Features: features, Config: b}}
	ends := [2]*netEnd{{peer: w.B, pairs: pairs}, {peer: w.A, pairs: pairs}}
	for i := range ends {
		ends[i].from = ends[1-i]
		for range pairs {
			ends[i].lines = append(ends[i].lines, &netLine{})
		}
	}
	w.A.Work, w.B.Work = ends[0].work, ends[1].work
	return w
}

// NetQueues returns the number of queues of a card: two for each queue pair, and the control queue.
func NetQueues(pairs int) int { return 2*pairs + 1 }

// netEnd is one card's end of the wire.
type netEnd struct {
	peer  *Device
	from  *netEnd // the other card's end of the wire
	pairs int
	lines []*netLine
	used  netUsed
}

// netLine holds the frames on the wire in one direction, for one queue pair.
type netLine struct {
	mu     sync.Mutex // guards all fields of the netLine
	frames [wireDepth][]byte
	head   int
	count  int
}

// wireDepth is the capacity of a netLine in frames.
const wireDepth = 32

// netUsed lists the buffers into which a frame was received.
type netUsed struct {
	heads   []uint16
	written []uint32
}

const (
	netHeader    = 12
	featureMerge = 1 << 15
)

// work moves frames for a card. It is called when the card or its peer was notified.
func (e *netEnd) work(d *Device) {
	for i := range e.pairs {
		if e.send(d, d.Queues[2*i+1], e.lines[i]) {
			e.peer.Poke()
		}
		if e.receive(d, d.Queues[2*i], e.from.lines[i]) {
			e.peer.Poke()
		}
	}
	for c := d.Queues[2*e.pairs].Take(); c != nil; c = d.Queues[2*e.pairs].Take() {
		d.Queues[2*e.pairs].Done(c, c.Scatter(0, []byte{0})) // every command succeeds
	}
}

// send moves frames from the transmit queue to the wire while the wire has room. It reports whether it has moved any.
func (e *netEnd) send(d *Device, q *Queue, l *netLine) (sent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.count < wireDepth {
		c := q.Take()
		if c == nil {
			break
		}
		slot := &l.frames[(l.head+l.count)%wireDepth]
		n := c.OutLen()
		if cap(*slot) < n {
			*slot = make([]byte, n)
		}
		*slot = (*slot)[:n]
		c.Gather(0, *slot)
		l.count++
		sent = true
		q.Done(c, 0)
	}
	return sent
}

// receive moves frames from the wire to the receive queue while the queue has buffers. It reports whether it has moved
// any.
func (e *netEnd) receive(d *Device, q *Queue, l *netLine) (received bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.count > 0 && e.deliver(d, q, l.frames[l.head]) {
		l.head = (l.head + 1) % wireDepth
		l.count--
		received = true
	}
	return received
}

// deliver writes a frame into as many buffers as the frame needs (virtio 1.2 section 5.1.6.4). If there are too few
// buffers, deliver returns false and uses none.
func (e *netEnd) deliver(d *Device, q *Queue, frame []byte) bool {
	u := &e.used
	u.heads, u.written = u.heads[:0], u.written[:0]
	var first []byte // the first buffer of the frame
	for at := 0; at < len(frame); {
		c := q.Take()
		if c == nil || len(u.heads) > 0 && !d.has(featureMerge) {
			q.Untake(len(u.heads))
			return c != nil // if a buffer is left, the frame is too long for a card that does not merge buffers; it is dropped
		}
		if len(u.heads) == 0 {
			first = c.In[0]
		}
		n := c.Scatter(0, frame[at:])
		at += n
		u.heads = append(u.heads, c.Head)
		u.written = append(u.written, uint32(n))
	}
	le.PutUint16(first[netHeader-2:], uint16(len(u.heads)))
	q.Put(u.heads, u.written)
	return true
}
