package pressure

import (
	"slices"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, test := range []struct {
		name      string
		processes []Process
		want      int // ID of the expected process; 0: none
	}{
		{"no process", nil, 0},
		{"the largest", []Process{{ID: 7, Pages: 300}, {ID: 8, Pages: 400}, {ID: 9, Pages: 100}}, 8},
		{"sizes are adjusted", []Process{{ID: 7, Pages: 300}, {ID: 8, Pages: 100, Adjust: 500}}, 8},
		{"a protected process stays", []Process{{ID: 7, Pages: 300}, {ID: 9, Pages: 400, Adjust: Never}}, 7},
		{"all are protected", []Process{{ID: 9, Pages: 400, Adjust: Never}}, 0},
		{"a negative score is a score", []Process{{ID: 9, Pages: 4, Adjust: -999}}, 9},
		{"of equals the youngest", []Process{{ID: 3, Pages: 5}, {ID: 4, Pages: 5}}, 4},
	} {
		if id, ok := Choose(1000, test.processes); id != test.want || ok != (test.want != 0) {
			t.Errorf("%s: %d, %v, want %d", test.name, id, ok, test.want)
		}
	}
}

// Many small processes of an ordinary user are killed together, and do not cause the end of a larger one of another user.
func TestChooseSome(t *testing.T) {
	large, root := Process{ID: 2, User: 7, Pages: 50}, Process{ID: 3, Pages: 70}
	small := []Process{{ID: 10, User: 8, Pages: 20}, {ID: 11, User: 8, Pages: 20}, {ID: 12, User: 8, Pages: 20}, {ID: 13, User: 8, Pages: 9}, {ID: 14, User: 8, Pages: 15, Adjust: Never}}
	for _, test := range []struct {
		name      string
		processes []Process
		pages     int64
		crowded   bool
		want      []int
	}{
		{"no process", nil, 1, true, nil},
		{"one of a crowd", append(small, large), 1, true, []int{12}},
		{"a crowd", append(small, large), 100, true, []int{12, 11, 10}},
		{"up to the limit", append(small, Process{ID: 15, User: 8, Pages: 20}), 100, true, []int{15, 12, 11}},
		{"the largest", append(small, large), 100, false, []int{2}},
		{"of root's larger ones the largest", append(small, root), 10, true, []int{3}},
	} {
		if got := ChooseSome(1000, test.processes, test.pages, 3, test.crowded); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
