// Package blockmap maps block numbers to pointers. Neighbouring numbers share a leaf, so that a lookup of a range costs about as
// much as a lookup of one number, also if it finds nothing.
//
// A Go map of single numbers was slower: for 64 KiB, a direct write looks up 16 blocks twice. And a Go map in which most
// keys were deleted searches long for a key that it does not have, until it grows. A block without neighbours needs 144 bytes more
// than in a Go map.
package blockmap

import "iter"

// span is the number of block numbers of a leaf, a power of two.
const span = 16

// Map maps block numbers to pointers. The zero Map is empty. Concurrent calls of Get and In are allowed, if no other method runs.
type Map[T any] struct {
	leaves map[uint64]*leaf[T] // by number / span; no leaf is empty
}

type leaf[T any] struct {
	count  int // number of values that are not nil
	values [span]*T
}

// Get returns the value of a number, or nil.
func (m *Map[T]) Get(number uint64) *T {
	if l := m.leaves[number/span]; l != nil {
		return l.values[number%span]
	}
	return nil
}

// Set sets the value of a number. v is not nil.
func (m *Map[T]) Set(number uint64, v *T) {
	l := m.leaves[number/span]
	if l == nil {
		if l = new(leaf[T]); m.leaves == nil {
			m.leaves = map[uint64]*leaf[T]{}
		}
		m.leaves[number/span] = l
	}
	if l.values[number%span] == nil {
		l.count++
	}
	l.values[number%span] = v
}

// Delete removes a number.
func (m *Map[T]) Delete(number uint64) {
	l := m.leaves[number/span]
	if l == nil || l.values[number%span] == nil {
		return
	}
	l.values[number%span] = nil
	if l.count--; l.count == 0 {
		delete(m.leaves, number/span)
	}
}

// In returns the values of the n numbers from number on, in their order. The loop may delete values. number+n is at most 1<<63.
func (m *Map[T]) In(number, n uint64) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for at, end := number, number+n; at < end; {
			next := min(end, at/span*span+span)
			if l := m.leaves[at/span]; l != nil {
				for _, v := range l.values[at%span : at%span+next-at] {
					if v != nil && !yield(v) {
						return
					}
				}
			}
			at = next
		}
	}
}

// All returns all values, in no order. The loop may delete values, which are then not returned.
func (m *Map[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, l := range m.leaves {
			for i := range l.values {
				if v := l.values[i]; v != nil && !yield(v) {
					return
				}
			}
		}
	}
}
