// Package snapshot is a block device that leaves the device under it unchanged: it keeps written sectors in memory, and
// reads all other sectors from the device under it. The written sectors are lost when the snapshot is closed.
package snapshot

import (
	"sync"

	"loam/block"
	"loam/block/relay"
)

// pageSize is the unit of memory in bytes. Only the sectors that were written are valid.
const pageSize = 4096

// page is one page of the device's contents.
type page struct {
	data    [pageSize]byte
	written uint8 // a bit for each sector of 512 bytes
}

// Device is a snapshot. It implements block.Device.
type Device struct {
	under    block.Device
	info     block.Info
	relay    *relay.Relay
	counters block.Counters
	limit    int // maximum number of pages of written sectors

	mu     sync.Mutex // guards the fields below
	pages  map[int64]*page
	closed bool
}

var _ block.Device = (*Device)(nil)

// New returns a snapshot of d. Closing the snapshot closes d. At most limit bytes are kept, in
// pages of 4 KiB; further writes fail with ErrNoSpace. Flush does nothing; Discard and WriteZeroes
// are not supported.
func New(d block.Device, limit int64) *Device {
	s := &Device{under: d, info: d.Info(), limit: int(limit / pageSize), pages: map[int64]*page{}}
	s.info.ReadOnly, s.info.Volatile, s.info.FUA = false, false, true
	s.info.MaxDiscard, s.info.MaxZeroes = 0, 0
	s.relay = relay.New(d, s.returned)
	return s
}

// Info implements block.Device.
func (s *Device) Info() block.Info { return s.info }

// Size implements block.Device.
func (s *Device) Size() int64 { return s.under.Size() }

// Resized implements block.Device.
func (s *Device) Resized() <-chan struct{} { return s.under.Resized() }

// Queues implements block.Device.
func (s *Device) Queues() int { return s.under.Queues() }

// Stats implements block.Device.
func (s *Device) Stats() block.Stats { return s.counters.Stats() }

// Submit implements block.Device.
func (s *Device) Submit(queue int, rs []*block.Request) {
	for _, r := range rs {
		if err := r.Check(&s.info, s.Size()); err != nil {
			s.counters.Reject(r, err)
			continue
		}
		switch {
		case s.isClosed():
			s.counters.Reject(r, block.ErrClosed)
		case r.Op == block.Read:
			s.counters.Begin(r)
			s.relay.Pass(queue, r, *r)
		case r.Op == block.Write:
			s.counters.Finish(r, s.write(r))
		default:
			s.counters.Finish(r, nil)
		}
	}
}

func (s *Device) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// returned completes a read: sectors that are in memory replace those that were read from the device under the snapshot.
func (s *Device) returned(r *block.Request, err error) {
	if err == nil {
		s.mu.Lock()
		each(r, func(at int64, p []byte) {
			if g := s.pages[at/pageSize]; g != nil {
				g.read(int(at%pageSize), p)
			}
		})
		s.mu.Unlock()
	}
	s.counters.Finish(r, err)
}

// write stores the data of a request in memory: all of the data, or nothing if the limit is reached.
func (s *Device) write(r *block.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := 0
	last := int64(-1)
	each(r, func(at int64, _ []byte) {
		if n := at / pageSize; n != last && s.pages[n] == nil {
			fresh, last = fresh+1, n
		}
	})
	if len(s.pages)+fresh > s.limit {
		return block.ErrNoSpace
	}
	each(r, func(at int64, p []byte) {
		g := s.pages[at/pageSize]
		if g == nil {
			g = new(page)
			s.pages[at/pageSize] = g
		}
		g.write(int(at%pageSize), p)
	})
	return nil
}

const sector = 512

func (g *page) read(at int, p []byte) {
	for n := 0; n < len(p); n += sector {
		if g.written>>((at+n)/sector)&1 != 0 {
			copy(p[n:n+sector], g.data[at+n:])
		}
	}
}

func (g *page) write(at int, p []byte) {
	copy(g.data[at:], p)
	for n := 0; n < len(p); n += sector {
		g.written |= 1 << ((at + n) / sector)
	}
}

// each calls f for the part of a request's data in each page.
func each(r *block.Request, f func(at int64, p []byte)) {
	at := r.Offset
	for _, p := range r.Data {
		for len(p) > 0 {
			n := min(int64(len(p)), pageSize-at%pageSize)
			f(at, p[:n])
			p, at = p[n:], at+n
		}
	}
}

// Close implements block.Device.
func (s *Device) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.relay.Close()
}
