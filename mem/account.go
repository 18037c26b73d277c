package mem

import (
	"sync/atomic"

	"loam/abi/linux"
)

// Overcommit is the rule by which Account grants memory, with the values of vm.overcommit_memory.
type Overcommit uint8

// Rules. Charged is private writable memory and shared anonymous memory, by size of the mapping,
// not by use.
const (
	// Heuristic refuses a single mapping that is larger than all of memory. The sum is
	// not limited. Mappings with MAP_NORESERVE are not charged.
	Heuristic Overcommit = iota
	// Always refuses nothing.
	Always
	// Never refuses what would make the sum exceed the limit, MAP_NORESERVE or not.
	Never
)

// Account counts the memory promised to all processes of a system. Its methods are safe for
// concurrent use.
type Account struct {
	Rule  Overcommit
	Total int64 // pages of memory; there is no swap
	Limit int64 // pages, for Never

	committed atomic.Int64
}

// Committed returns the pages promised, as Committed_AS of /proc/meminfo.
func (a *Account) Committed() int64 { return a.committed.Load() }

// charge promises pages. Errors: ENOMEM.
func (a *Account) charge(pages int64) error {
	sum := a.committed.Add(pages)
	if a.Rule == Heuristic && pages > a.Total || a.Rule == Never && sum > a.Limit {
		a.committed.Add(-pages)
		return linux.ENOMEM
	}
	return nil
}

func (a *Account) refund(pages int64) { a.committed.Add(-pages) }
