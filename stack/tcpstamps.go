package stack

import (
	"sync"
	"time"

	"loam/stack/tcp"
)

// When the bytes of a connection arrived, for programs that ask (SO_TIMESTAMP): as on Linux
// that of the last byte that a read took. The shard notes it once a turn.

// stamps says when the stream had come how far.
type stamps struct {
	mu   sync.Mutex
	list []stamp // the oldest first; at most maxStamps
}

type stamp struct {
	end uint64 // of what had arrived
	at  tcp.Time
}

// maxStamps bounds the list. Beyond it neighbours are joined, with the time of the later.
const maxStamps = 256

// noteArrival notes how far the stream has come. It runs on the shard.
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

// Arrived is when the last byte that was read arrived, by the clock as it goes now, with peek
// that of so many bytes further on; now, where the shard has not noted it yet, or came to it
// before TCPOptions.Stamps was set.
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
