package virtionet

import (
	"sync"
	"time"

	"loam/driver"
	"loam/driver/virtio"
	"loam/link"
)

// sender is the send queue of a pair. One goroutine at a time calls Send. The lock is needed only
// for Close and Counters.
//
// The card owns a sent frame until it returns the frame's descriptor chain. The next Send takes
// returned chains back; no goroutine waits for them. A Send that cannot take all frames requests an
// interrupt, for when a quarter of the frames in transmission have been sent.
type sender struct {
	room *link.Bell
	// short has a buffer of one. Send sends to it when it has not taken all frames (if it is full,
	// the loop is already notified), and the loop receives. It is never closed.
	short chan struct{}

	mu    sync.Mutex // guards all fields below against Close
	pair  *pair
	queue *virtio.Queue

	segments [virtio.MaxSegments]driver.Segment // segments of the frame being added

	frames []*link.Frame // if the card can reach the Go heap: the frame of each chain that it holds, by the chain's head
	slots  slots         // if the card cannot reach the Go heap: memory of the driver, in slots
	slot   []uint16      // index of the slot of each chain, by the chain's head
	spare  []uint16      // slots that the card does not hold
}

// copies is the most frames in transmission if frames are copied. Each slot has room for the
// longest frame.
const copies = 64

// setUp prepares the sender for queue q, and allocates slots if the card cannot reach the Go heap.
func (s *sender) setUp(p *pair, q *virtio.Queue) (err error) {
	d := p.device
	s.pair, s.queue = p, q
	s.room, s.short = link.NewBell(), make(chan struct{}, 1)
	q.Disarm()
	if d.direct {
		s.frames = make([]*link.Frame, q.Size())
		return nil
	}
	s.slot = make([]uint16, q.Size())
	n := min(copies, q.Size())
	for i := range n {
		s.spare = append(s.spare, uint16(i))
	}
	s.slots, err = newSlots(d.machine, n, s.slotLen())
	return err
}

// slotLen returns the length in bytes of the longest frame with its header.
func (s *sender) slotLen() int {
	if s.pair.device.info.Offloads&^link.OffloadChecksum != 0 {
		return headerLen + link.MaxFrame
	}
	return s.pair.device.leastRoom()
}

// Room implements link.Queue.
func (p *pair) Room() <-chan struct{} { return p.sender.room.C() }

// Send implements link.Queue.
func (p *pair) Send(fs []*link.Frame) (int, error) {
	s, d := &p.sender, p.device
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := d.state(); err != nil {
		return 0, err
	}
	if err := s.reclaim(); err != nil {
		d.fail(err)
		return 0, d.state()
	}
	n, err := link.Transmit(&d.info, &p.counters, (*port)(s), fs)
	s.queue.Kick()
	if n < len(fs) && err == nil {
		s.wantRoom()
	}
	return n, err
}

// wantRoom requests a signal of Room when there is room again.
func (s *sender) wantRoom() {
	if s.queue.Arm(max(1, s.queue.Held()/4)) {
		s.room.Ring()
		return
	}
	select {
	case s.short <- struct{}{}:
	default:
	}
}

// reclaim takes back the frames that the card has sent.
func (s *sender) reclaim() error {
	for {
		head, _, ok, err := s.queue.Take()
		if !ok {
			return err
		}
		if s.frames != nil {
			s.frames[head].Free()
			s.frames[head] = nil
		} else {
			s.spare = append(s.spare, s.slot[head])
		}
	}
}

// port is a sender as a link.Sender. link.Transmit has already checked the frames.
type port sender

// Send adds frames to the ring.
func (s *port) Send(fs []*link.Frame) (n int, err error) {
	add := s.addCopy
	if s.pair.device.direct {
		add = s.addFrame
	}
	for n < len(fs) && add(fs[n]) {
		n++
	}
	return n, nil
}

// putHeader writes the virtio-net header of f. Without HOST_ECN, the header must not state that
// only the first segment of a frame carries CWR. All segments then carry it, which the receiver
// treats as one signal (RFC 3168 section 6.1.3).
func (s *port) putHeader(b []byte, f *link.Frame) {
	o := f.Offload
	o.ECN = o.ECN && s.pair.device.ecn
	o.Put(b)
	b[link.VirtioHeaderLen], b[link.VirtioHeaderLen+1] = 0, 0
}

// addFrame adds the frame itself to the ring. It returns false if there is no room.
func (s *port) addFrame(f *link.Frame) bool {
	if !s.queue.Fits(1) {
		return false
	}
	o := f.Offload
	header := f.Prepend(headerLen)
	n, ok := s.pair.device.machine.Segments(f.Bytes(), s.segments[:])
	if !ok || !s.queue.Fits(n) {
		if s.queue.Held() == 0 { // the frame has more pieces than the ring ever has room for
			f.Free()
			s.pair.counters.TxDropped(1)
			return true
		}
		f.TrimFront(headerLen)
		return false
	}
	f.Offload = o // the metadata from before Prepend: the card counts offsets from the end of the header
	s.putHeader(header, f)
	s.frames[s.queue.Add(s.segments[:n], nil)] = f
	return true
}

// addCopy adds a copy of the frame to the ring, and frees the frame. It returns false if there is
// no room.
func (s *port) addCopy(f *link.Frame) bool {
	if len(s.spare) == 0 || !s.queue.Fits(1) {
		return false
	}
	i := s.spare[len(s.spare)-1]
	s.spare = s.spare[:len(s.spare)-1]
	b := s.slots.bytes(i)
	s.putHeader(b, f)
	n := headerLen + copy(b[headerLen:], f.Bytes())
	f.Free()
	s.slot[s.queue.Add(s.slots.segment(i, n), nil)] = i
	return true
}

// stallBound is how long a full queue may make no progress before the card is notified again, in
// case it missed the first notification.
const stallBound = 5 * time.Second

// loop waits for room after a Send that did not take all frames.
func (s *sender) loop() {
	d := s.pair.device
	timer := time.NewTimer(stallBound)
	defer timer.Stop()
	for {
		select {
		case <-s.short:
		case <-d.done:
			return
		}
		timer.Reset(stallBound)
		select {
		case <-s.queue.C():
		case <-timer.C:
			d.stalls.Add(1)
			s.queue.Nudge()
		case <-d.done:
			return
		}
		s.room.Ring()
	}
}

// free frees the frames that the card still held. The card must be stopped.
func (s *sender) free(m driver.Machine) {
	for i, f := range s.frames {
		if f != nil {
			f.Free()
			s.frames[i] = nil
		}
	}
	s.slots.free(m)
}
