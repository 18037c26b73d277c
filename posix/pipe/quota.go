package pipe

import (
	"sync"
	"sync/atomic"

	"loam/abi/linux"
)

// quotas limits the sizes of pipes (pipe(7), /proc/sys/fs). The zero value has Linux's defaults. A value is the difference from its
// default.
type quotas struct {
	maxSize, soft, hard atomic.Int64

	mu    sync.Mutex
	pages map[uint32]int // capacity of all pipes of each user in pages
}

// Defaults of the limits: DefaultMaxSize in bytes, and the soft limit in pages. There is no hard limit by default.
const (
	DefaultMaxSize = 1 << 20
	defaultSoft    = 16384
)

// fewPages is the capacity of a new pipe of a user above the soft limit.
const fewPages = 2

// Creator is the caller that creates a pipe or changes its capacity.
type Creator struct {
	UID       uint32
	Resource  bool // has CAP_SYS_RESOURCE
	Unlimited bool // has CAP_SYS_RESOURCE or CAP_SYS_ADMIN: the limits of pages for a user do not apply
}

// MaxSize is the capacity in bytes that a caller without CAP_SYS_RESOURCE may set (pipe-max-size). SetMaxSize rounds it up to a power
// of two, and to at least a page.
func (q *quotas) MaxSize() int64 { return DefaultMaxSize + q.maxSize.Load() }

// SetMaxSize sets MaxSize.
func (q *quotas) SetMaxSize(n int64) { q.maxSize.Store(int64(roundSize(int(n))) - DefaultMaxSize) }

// SoftPages is the number of pages above which a new pipe of a user has only two pages (pipe-user-pages-soft); 0 is no limit.
func (q *quotas) SoftPages() int64 { return defaultSoft + q.soft.Load() }

// SetSoftPages sets SoftPages.
func (q *quotas) SetSoftPages(n int64) { q.soft.Store(n - defaultSoft) }

// HardPages is the number of pages above which a user gets no new pipe (pipe-user-pages-hard); 0 is no limit.
func (q *quotas) HardPages() int64 { return q.hard.Load() }

// SetHardPages sets HardPages.
func (q *quotas) SetHardPages(n int64) { q.hard.Store(n) }

// above reports whether a number of pages is above a limit; 0 is no limit.
func above(pages int, limit int64) bool { return limit != 0 && int64(pages) > limit }

// begin charges the pages of a new pipe to its creator, and returns their number. Errors: ENFILE.
func (q *quotas) begin(who Creator) (pages int, errno linux.Errno) {
	q.mu.Lock()
	defer q.mu.Unlock()
	pages = Size / pageSize
	if most := int(q.MaxSize()) / pageSize; pages > most && !who.Resource {
		pages = most
	}
	sum := q.pages[who.UID] + pages
	if above(sum, q.SoftPages()) && !who.Unlimited {
		sum += fewPages - pages
		pages = fewPages
	}
	if above(sum, q.HardPages()) && !who.Unlimited {
		return 0, linux.ENFILE
	}
	if q.pages == nil {
		q.pages = map[uint32]int{}
	}
	q.pages[who.UID] = sum
	return pages, 0
}

// change charges the change of a capacity to the user of a pipe. A capacity that grows must be within the limits, unless the caller
// is unlimited. Errors: EPERM.
func (q *quotas) change(uid uint32, from, to int, unlimited bool) linux.Errno {
	q.mu.Lock()
	defer q.mu.Unlock()
	sum := q.pages[uid] + to - from
	if to > from && !unlimited && (above(sum, q.SoftPages()) || above(sum, q.HardPages())) {
		return linux.EPERM
	}
	if q.pages[uid] = sum; sum == 0 {
		delete(q.pages, uid)
	}
	return 0
}

// release ends the charge of a pipe without open ends.
func (p *pipe) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quotas != nil && p.ends == [2]int{} {
		p.quotas.change(p.uid, p.capacity, 0, true)
		p.quotas = nil
	}
}
