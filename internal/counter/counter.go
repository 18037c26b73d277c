// Package counter is what sets of named counters have in common: names, and a
// snapshot that can be walked and printed. A set is a type of uint8 whose values
// are the places in an array; who counts, when, and in which words is its owner's
// business. The sets are stack.Counters and usernet.Counters.
package counter

import (
	"fmt"
	"iter"
	"strings"
)

// Name is the name of counter c; what is no counter of the set has a number.
func Name[C ~uint8](names []string, c C) string {
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("counter(%d)", uint8(c))
}

// All yields every counter with its value, zero or not.
func All[C ~uint8](values []uint64) iter.Seq2[C, uint64] {
	return func(yield func(C, uint64) bool) {
		for i, n := range values {
			if !yield(C(i), n) {
				return
			}
		}
	}
}

// List lists the counters that are not zero, one "name value" a line.
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
