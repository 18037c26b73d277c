package stack

import (
	"sync"
	"time"

	"loam/stack/tcp"
)

// Arrival times of received bytes (SO_TIMESTAMP). As on Linux, the time is the arrival time of the last byte that a
// read returned. The shard records it once in each turn (one pass over its input).

// stamps records the arrival times of the bytes of the stream: positions in the stream, and the time at which the bytes before
// each position had arrived.
type stamps struct {
	mu   sync.Mutex
	list []stamp // times by position in the stream, oldest first; at most maxStamps
}

type stamp struct {
	end uint64 // stream offset after the last byte that had arrived
	at  tcp.Time
}

// maxStamps bounds the list. When it is full, pairs of neighbours are merged, with the
// later time.
const maxStamps = 256

// noteArrival records how far the stream has arrived. It runs on the shard.
func (c *TCPConn) noteArrival(now tcp.Time) {
	end := c.received.Committed()
	s := &c.stamps
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.list); n > 0 && s.list[n-1].end >= end {
		return
	}
	if len(s.list) == maxStamps {
		for i := range maxStamps / 2 {
			s.list[i] = s.list[2*i+1]
		}
		s.list = s.list[:maxStamps/2]
	}
	s.list = append(s.list, stamp{end, now})
}

// Arrived returns the arrival time of the last byte that was read, by the current wall clock. If peek is not 0, it
// returns the arrival time of the byte peek positions later. It returns the present time if the shard has not recorded
// the arrival yet, or the byte arrived before TCPOptions.Stamps was set.
func (c *TCPConn) Arrived(peek int) time.Time {
	read := c.received.Consumed() + uint64(peek)
	s := &c.stamps
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.list) > 1 && s.list[0].end < min(read, c.received.Consumed()) {
		s.list = s.list[1:]
	}
	for _, e := range s.list {
		if e.end >= read {
			return time.Now().Add(e.at - c.shard.stack.now())
		}
	}
	return time.Now()
}
