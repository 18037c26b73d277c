// Package counter is the common part of sets of named counters: names, and a snapshot that can be
// iterated and printed. A set is a type derived from uint8 whose values are indices of an array. The
// owner of a set defines its counters and increments them. The sets are stack.Counters and
// usernet.Counters.
package counter

import (
	"fmt"
	"iter"
	"strings"
)

// Name returns the name of counter c, or "counter(N)" if the set has no counter c.
func Name[C ~uint8](names []string, c C) string {
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("counter(%d)", uint8(c))
}

// All returns an iterator over all counters and their values, including counters that are
// zero.
func All[C ~uint8](values []uint64) iter.Seq2[C, uint64] {
	return func(yield func(C, uint64) bool) {
		for i, n := range values {
			if !yield(C(i), n) {
				return
			}
		}
	}
}

// List returns the counters that are not zero, one "name value" per line.
func List[C interface {
	~uint8
	fmt.Stringer
}](values []uint64) string {
	var b strings.Builder
	for c, n := range All[C](values) {
		if n != 0 {
			fmt.Fprintf(&b, "%s %d\n", c, n)
		}
	}
	return b.String()
}
