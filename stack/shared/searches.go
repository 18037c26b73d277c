package shared

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"loam/stack/plpmtud"
)

// Searches holds the settings of searches for path MTUs, and their results for all shards. It implements plpmtud.Paths. The zero value has
// the default settings.
type Searches struct {
	config atomic.Pointer[plpmtud.Config]
	known  atomic.Int64 // number of results; a new connection takes the lock only if there are any

	mu    sync.Mutex // guards the field found, and changes of config
	found plpmtud.Table
}

// Init sets the settings.
func (s *Searches) Init(c plpmtud.Config) { s.config.Store(&c) }

// Searches returns the settings of new searches, and Change changes them.
func (s *Searches) Searches() plpmtud.Config {
	if c := s.config.Load(); c != nil {
		return *c
	}
	return plpmtud.Config{}
}

func (s *Searches) Change(f func(*plpmtud.Config)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.Searches()
	f(&c)
	s.config.Store(&c)
}

// Found returns the result of an earlier search for the path to a host.
func (s *Searches) Found(now time.Duration, host netip.Addr) (plpmtud.Result, bool) {
	if s.known.Load() == 0 {
		return plpmtud.Result{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.found.Find(now, host)
	s.known.Store(int64(s.found.Len()))
	return r, ok
}

// Store stores a result for later connections. A Low of 0 removes it.
func (s *Searches) Store(now time.Duration, host netip.Addr, r plpmtud.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.Store(now, host, r)
	s.known.Store(int64(s.found.Len()))
}
