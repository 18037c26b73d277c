package plpmtud

import (
	"net/netip"
	"time"

	"loam/internal/list"
)

// Result is the result of a search: the path carries packets of Low bytes, and probably none above High. At the time Again, larger
// sizes are tried again.
type Result struct {
	Low, High uint16
	Again     time.Duration
}

// Paths gives connections the settings and the results that all connections of the owner share. Each method takes at most a
// leaf lock.
type Paths interface {
	// Searches returns the settings of new searches.
	Searches() Config
	// Found returns the result of an earlier search for the path to a host.
	Found(now time.Duration, host netip.Addr) (Result, bool)
	// Store stores a result for later connections. A Low of 0 removes it.
	Store(now time.Duration, host netip.Addr, r Result)
}

// Limits of a Table.
const (
	maxResults = 4096             // number of hosts; the least recently used one is evicted
	lifetime   = 20 * time.Minute // time for which a result is kept
)

// Table holds results by host. The zero value is empty.
type Table struct {
	table map[netip.Addr]*entry
	byUse list.List[entry]
}

type entry struct {
	host    netip.Addr
	result  Result
	expires time.Duration
	use     list.Node[entry]
}

// Len returns the number of hosts.
func (t *Table) Len() int { return len(t.table) }

// Find returns the result for a host. ok is false if there is none.
func (t *Table) Find(now time.Duration, host netip.Addr) (r Result, ok bool) {
	e := t.table[host]
	if e == nil {
		return r, false
	}
	if now >= e.expires {
		t.drop(e)
		return r, false
	}
	t.byUse.PushBack(&e.use)
	return e.result, true
}

// Store sets the result for a host. A result with a Low of 0 removes it.
func (t *Table) Store(now time.Duration, host netip.Addr, r Result) {
	e := t.table[host]
	switch {
	case e == nil && r.Low == 0:
		return
	case r.Low == 0:
		t.drop(e)
		return
	case e == nil:
		if len(t.table) >= maxResults {
			t.drop(t.byUse.Front())
		}
		e = &entry{host: host}
		e.use.Owner = e
		if t.table == nil {
			t.table = make(map[netip.Addr]*entry)
		}
		t.table[host] = e
	}
	e.result, e.expires = r, now+lifetime
	t.byUse.PushBack(&e.use)
}

func (t *Table) drop(e *entry) {
	e.use.Remove()
	delete(t.table, e.host)
}
