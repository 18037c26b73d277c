package pressure

import "testing"

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
