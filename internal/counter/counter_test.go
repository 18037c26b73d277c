package counter

import "testing"

type fruit uint8

func (f fruit) String() string { return Name([]string{"apples", "pears"}, f) }

func TestNames(t *testing.T) {
	for f, want := range map[fruit]string{0: "apples", 1: "pears", 2: "counter(2)", 255: "counter(255)"} {
		if got := f.String(); got != want {
			t.Errorf("%d is called %q, want %q", uint8(f), got, want)
		}
	}
}

func TestAll(t *testing.T) {
	var seen []uint64
	for f, n := range All[fruit]([]uint64{5, 0, 7}) {
		if seen = append(seen, uint64(f), n); f == 1 {
			break
		}
	}
	if len(seen) != 4 || seen[0] != 0 || seen[1] != 5 || seen[2] != 1 || seen[3] != 0 {
		t.Errorf("yielded %v", seen)
	}
}

func TestList(t *testing.T) {
	if got := List[fruit]([]uint64{0, 12}); got != "pears 12\n" {
		t.Errorf("the list is %q", got)
	}
	if got := List[fruit](nil); got != "" {
		t.Errorf("the list of nothing is %q", got)
	}
}
