package mem

import (
	"sync/atomic"

	"loam/abi/linux"
)

// Overcommit is the rule by which an Account grants or refuses memory. The values are those of vm.overcommit_memory.
type Overcommit uint8

// Rules. Private writable memory and shared anonymous memory are charged. The charge is the size of the mapping, not
// the number of pages in use.
const (
	// Heuristic refuses a single mapping that is larger than all of memory. The sum of all mappings is not limited.
	// Mappings with MAP_NORESERVE are not charged.
	Heuristic Overcommit = iota
	// Always refuses nothing.
	Always
	// Never refuses a mapping that would make the sum exceed Limit. Mappings with MAP_NORESERVE are charged, too.
	Never
)

// Account counts the memory that is promised to all processes of a system, whether or not they have used it. Its
// methods are safe for concurrent use.
type Account struct {
	Rule  Overcommit
	Total int64 // pages of memory; there is no swap
	Limit int64 // maximum sum of charged pages; used with rule Never

	committed atomic.Int64
}

// Committed returns the number of promised pages, which is Committed_AS in /proc/meminfo.
func (a *Account) Committed() int64 { return a.committed.Load() }

// charge adds pages to the sum. It returns ENOMEM if the rule does not allow it.
func (a *Account) charge(pages int64) error {
	sum := a.committed.Add(pages)
	if a.Rule == Heuristic && pages > a.Total || a.Rule == Never && sum > a.Limit {
		a.committed.Add(-pages)
		return linux.ENOMEM
	}
	return nil
}

func (a *Account) refund(pages int64) { a.committed.Add(-pages) }
