package ring

import (
	"sync"
	"time"
)

// Stamps records the arrival times of the bytes of a stream (SO_TIMESTAMP), by the clock of the stack. The zero
// value is empty. Its methods may be called concurrently.
type Stamps struct {
	mu   sync.Mutex
	list []stamp // times by position in the stream, oldest first; at most maxStamps
}

// stamp is a position in the stream, and the time at which the bytes before it had arrived.
type stamp struct {
	end uint64
	at  time.Duration
}

// maxStamps bounds the list. When it is full, pairs of neighbours are merged, with the
// later time.
const maxStamps = 256

// Note records that the bytes before the offset end have arrived.
func (s *Stamps) Note(end uint64, now time.Duration) {
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

// Before returns the time at which the bytes before the offset end had arrived. It returns false if that is not recorded yet.
// The times of bytes that precede both end and consumed are forgotten.
func (s *Stamps) Before(end, consumed uint64) (at time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.list) > 1 && s.list[0].end < min(end, consumed) {
		s.list = s.list[1:]
	}
	for _, e := range s.list {
		if e.end >= end {
			return e.at, true
		}
	}
	return 0, false
}
