package schedule

import (
	"slices"
	"testing"
)

// A goroutine is bound when the set of CPUs changes. A bound goroutine is released before it is bound again.
func TestBinding(t *testing.T) {
	var b Binding
	var got []uint64
	for _, cpus := range []uint64{0, 2, 2, 4, 0, 0} {
		b.Set(cpus)
		b.Apply(func(cpus uint64) { got = append(got, cpus) })
	}
	if want := []uint64{2, 0, 4, 0}; !slices.Equal(got, want) {
		t.Errorf("bound to %v, want %v", got, want)
	}
}
