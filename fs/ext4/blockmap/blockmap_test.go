package blockmap

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestModel compares a Map with a Go map, after random changes.
func TestModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var m Map[uint64]
	model := map[uint64]*uint64{}
	for range 100_000 {
		number := random.Uint64N(200)
		switch random.IntN(5) {
		case 0, 1:
			v := new(number)
			m.Set(number, v)
			model[number] = v
		case 2, 3:
			m.Delete(number)
			delete(model, number)
		case 4:
			n := random.Uint64N(40)
			var want []*uint64
			for i := range n {
				if v := model[number+i]; v != nil {
					want = append(want, v)
				}
			}
			if got := slices.Collect(m.In(number, n)); !slices.Equal(got, want) {
				t.Fatalf("In(%d, %d) has %d values, want %d", number, n, len(got), len(want))
			}
		}
		if m.Get(number) != model[number] {
			t.Fatalf("Get(%d) = %v, want %v", number, m.Get(number), model[number])
		}
	}
	got := map[uint64]*uint64{}
	for v := range m.All() {
		got[*v] = v
	}
	if !maps.Equal(got, model) {
		t.Errorf("All has %d values, want %d", len(got), len(model))
	}
	for number := range model {
		m.Delete(number)
	}
	if len(m.leaves) != 0 {
		t.Errorf("%d leaves are left without values", len(m.leaves))
	}
}

// TestDeleteInLoop deletes the values that a loop over In returns.
func TestDeleteInLoop(t *testing.T) {
	var m Map[uint64]
	for number := range uint64(100) {
		m.Set(number, new(number))
	}
	for v := range m.In(5, 90) {
		m.Delete(*v)
	}
	var left []uint64
	for number := range uint64(100) {
		if m.Get(number) != nil {
			left = append(left, number)
		}
	}
	if want := []uint64{0, 1, 2, 3, 4, 95, 96, 97, 98, 99}; !slices.Equal(left, want) {
		t.Errorf("%v are left, want %v", left, want)
	}
}

// TestDeleteAllInLoop deletes all values in the first round of a loop over All.
func TestDeleteAllInLoop(t *testing.T) {
	var m Map[uint64]
	for number := range uint64(100) {
		m.Set(number, new(number))
	}
	rounds := 0
	for range m.All() {
		rounds++
		for number := range uint64(100) {
			m.Delete(number)
		}
	}
	if rounds != 1 {
		t.Errorf("All returns %d values, want 1", rounds)
	}
}

// absent is the result of lookups, so that the compiler keeps them.
var absent int

// BenchmarkAbsent looks up 16 numbers that a map does not have, after 4,096 others were set and deleted.
func BenchmarkAbsent(b *testing.B) {
	b.Run("Map", func(b *testing.B) {
		var m Map[uint64]
		for number := range uint64(4096) {
			m.Set(number, new(number))
		}
		for number := range uint64(4080) {
			m.Delete(number)
		}
		for b.Loop() {
			for range m.In(512, 16) {
				absent++
			}
		}
	})
	b.Run("GoMap", func(b *testing.B) {
		m := map[uint64]*uint64{}
		for number := range uint64(4096) {
			m[number] = new(number)
		}
		for number := range uint64(4080) {
			delete(m, number)
		}
		for b.Loop() {
			for i := range uint64(16) {
				if m[512+i] != nil {
					absent++
				}
			}
		}
	})
}
