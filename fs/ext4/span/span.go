// Package span has sets of blocks of a file, as ranges in ascending order that do not touch each other. Sets
// are values: methods return new sets, so an older one can be restored.
package span

import "slices"

// Span is the range of blocks from From to To-1.
type Span struct{ From, To uint64 }

// Set is a set of blocks.
type Set []Span

// after returns the index of the first range that ends after a block.
func (s Set) after(block uint64) int {
	at, _ := slices.BinarySearchFunc(s, block, func(p Span, b uint64) int {
		if p.To <= b {
			return -1
		}
		return 1
	})
	return at
}

// Find reports whether a block is in the set, and length is the number of blocks from it on that are also in the set,
// or also not in it; 0 means all.
func (s Set) Find(block uint64) (in bool, length uint64) {
	at := s.after(block)
	switch {
	case at == len(s):
		return false, 0
	case s[at].From <= block:
		return true, s[at].To - block
	}
	return false, s[at].From - block
}

// Add returns the set with a range that has no block in it yet.
func (s Set) Add(p Span) Set {
	at := s.after(p.From)
	s = slices.Insert(slices.Clone(s), at, p)
	if at+1 < len(s) && s[at+1].From == s[at].To {
		s[at].To = s[at+1].To
		s = slices.Delete(s, at+1, at+2)
	}
	if at > 0 && s[at-1].To == s[at].From {
		s[at-1].To = s[at].To
		s = slices.Delete(s, at, at+1)
	}
	return s
}

// Split returns the blocks before a block, and those from it on.
func (s Set) Split(block uint64) (before, rest Set) {
	at := s.after(block)
	before, rest = slices.Clone(s[:at]), slices.Clone(s[at:])
	if len(rest) > 0 && rest[0].From < block {
		before = append(before, Span{rest[0].From, block})
		rest[0].From = block
	}
	return before, rest
}

// Blocks returns the number of blocks.
func (s Set) Blocks() (n uint64) {
	for _, p := range s {
		n += p.To - p.From
	}
	return n
}
