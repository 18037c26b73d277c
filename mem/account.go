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
	Total int64 // pages of memory; there is no swap

	committed atomic.Int64
	rule      atomic.Uint32 // an Overcommit
	ratio     atomic.Int64  // Ratio is the sum of this and DefaultRatio
	regions   atomic.Int64  // MaxRegions is the sum of this and DefaultRegions
}

// DefaultRatio is the default of vm.overcommit_ratio, and DefaultRegions the default of vm.max_map_count.
const (
	DefaultRatio   = 50
	DefaultRegions = 65530
)

// Rule returns the rule in use, and SetRule sets it for later mappings (vm.overcommit_memory).
func (a *Account) Rule() Overcommit     { return Overcommit(a.rule.Load()) }
func (a *Account) SetRule(r Overcommit) { a.rule.Store(uint32(r)) }

// Ratio returns the part of Total, in percent, that rule Never grants (vm.overcommit_ratio).
func (a *Account) Ratio() int64 { return DefaultRatio + a.ratio.Load() }

// SetRatio sets the part of Total that rule Never grants.
func (a *Account) SetRatio(n int64) { a.ratio.Store(n - DefaultRatio) }

// Limit returns the maximum sum of charged pages with rule Never, which is CommitLimit in /proc/meminfo.
func (a *Account) Limit() int64 { return a.Total * a.Ratio() / 100 }

// MaxRegions returns the maximum number of regions of a map (vm.max_map_count).
func (a *Account) MaxRegions() int { return int(DefaultRegions + a.regions.Load()) }

// SetMaxRegions sets the maximum number of regions of all maps. A map that has more keeps them.
func (a *Account) SetMaxRegions(n int64) { a.regions.Store(n - DefaultRegions) }

// Committed returns the number of promised pages, which is Committed_AS in /proc/meminfo.
func (a *Account) Committed() int64 { return a.committed.Load() }

// charge adds pages to the sum. It returns ENOMEM if the rule does not allow it.
func (a *Account) charge(pages int64) error {
	sum, rule := a.committed.Add(pages), a.Rule()
	if rule == Heuristic && pages > a.Total || rule == Never && sum > a.Limit() {
		a.committed.Add(-pages)
		return linux.ENOMEM
	}
	return nil
}

func (a *Account) refund(pages int64) { a.committed.Add(-pages) }
