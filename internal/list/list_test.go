package list

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type item struct {
	value int
	node  Node[item]
}

func collect(l *List[item]) (all []int) {
	for i := range l.All {
		all = append(all, i.value)
	}
	return all
}

// TestAgainstSlice moves elements between two lists and compares each list with a slice.
func TestAgainstSlice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var items [10]item
	for i := range items {
		items[i].value = i
		items[i].node.Owner = &items[i]
	}
	var l [2]List[item]
	var want [2][]int
	for range 10000 {
		it := &items[r.IntN(len(items))]
		for i := range want {
			want[i] = slices.DeleteFunc(want[i], func(v int) bool { return v == it.value })
		}
		if which := r.IntN(3); which < 2 {
			l[which].PushBack(&it.node)
			want[which] = append(want[which], it.value)
		} else {
			it.node.Remove()
		}
		for i := range want {
			if got := collect(&l[i]); !slices.Equal(got, want[i]) || l[i].Len() != len(want[i]) {
				t.Fatalf("list %d is %v (length %d), want %v", i, got, l[i].Len(), want[i])
			}
			if front := l[i].Front(); (front == nil) != (len(want[i]) == 0) || front != nil && front.value != want[i][0] {
				t.Fatalf("list %d begins with %v, want %v", i, front, want[i])
			}
		}
		if it.node.Listed() != (slices.Contains(want[0], it.value) || slices.Contains(want[1], it.value)) {
			t.Fatal("Listed is wrong")
		}
	}
}

func TestAllMayRemoveAndStop(t *testing.T) {
	var l List[item]
	items := make([]item, 5)
	for i := range items {
		items[i] = item{value: i}
		items[i].node.Owner = &items[i]
		l.PushBack(&items[i].node)
	}
	for i := range l.All {
		if i.value == 3 {
			break
		}
		i.node.Remove()
	}
	if got := collect(&l); !slices.Equal(got, []int{3, 4}) {
		t.Errorf("%v are left, want 3 and 4", got)
	}
}
