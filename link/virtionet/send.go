package virtionet

import (
	"sync"
	"time"

	"loam/driver"
	"loam/driver/virtio"
	"loam/link"
)

// sender is the sending queue of a pair. Send is called by one goroutine; the lock
// is for the end.
//
// A frame that is sent belongs to the card until its chain comes back, which is
// looked for by the next Send: nobody waits for it. Only a Send that comes up short
// asks for an interrupt, for when a quarter of what is on the way has gone.
type sender struct {
	room *link.Bell
	// short has one place. Send sends after it came up short (full: the loop has been
	// told); the loop receives. It is never closed.
	short chan struct{}

	mu    sync.Mutex // guards all below, against Close
	pair  *pair
	queue *virtio.Queue

	segments [virtio.MaxSegments]driver.Segment // of the frame that is being added

	frames []*link.Frame // by head: what the card has, where it reaches the heap
	slots  slots         // otherwise
	slot   []uint16      // by head
	spare  []uint16      // slots that the card does not have
}

// copies is how many frames may be on the way where they are copied: a slot takes
// the longest.
const copies = 64

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

// slotLen is the longest that is sent, with its header.
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

// wantRoom has the bell ring when there is room again.
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

// reclaim takes back what the card has sent.
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

// port is a sender as link.Transmit sees it, which has checked the frames.
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

// putHeader writes the virtio-net header of f. Without HOST_ECN the card may not be
// told that only the first segment of a frame carries CWR: all will, which the
// receiver takes as one (RFC 3168 section 6.1.3).
func (s *port) putHeader(b []byte, f *link.Frame) {
	o := f.Offload
	o.ECN = o.ECN && s.pair.device.ecn
	o.Put(b)
	b[link.VirtioHeaderLen], b[link.VirtioHeaderLen+1] = 0, 0
}

// addFrame adds the frame itself. It returns false if there is no room.
func (s *port) addFrame(f *link.Frame) bool {
	if !s.queue.Fits(1) {
		return false
	}
	o := f.Offload
	header := f.Prepend(headerLen)
	n, ok := s.pair.device.machine.Segments(f.Bytes(), s.segments[:])
	if !ok || !s.queue.Fits(n) {
		if s.queue.Held() == 0 { // it is in more pieces than there will ever be room for
			f.Free()
			s.pair.counters.TxDropped(1)
			return true
		}
		f.TrimFront(headerLen)
		return false
	}
	f.Offload = o // as Prepend found it: offsets count from behind the header
	s.putHeader(header, f)
	s.frames[s.queue.Add(s.segments[:n], nil)] = f
	return true
}

// addCopy adds a copy of the frame.
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

// stallBound is how long a full queue may stand still before the card is notified
// again: in case it has missed that.
const stallBound = 5 * time.Second

// loop waits for room after a Send that came up short.
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

// free frees what the card still had: it is stopped.
func (s *sender) free(m driver.Machine) {
	for i, f := range s.frames {
		if f != nil {
			f.Free()
			s.frames[i] = nil
		}
	}
	s.slots.free(m)
}
