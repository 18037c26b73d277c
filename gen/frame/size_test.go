package frame

import (
	"strings"
	"testing"
)

func take(z Sizes, n int) (all []int) {
	s := newSizer(z, 0, 1, 1)
	for range n {
		all = append(all, s.next()+FCSLen)
	}
	return all
}

// IMIX is 7 frames of 64 bytes, 4 of 594 and 1 of 1518, evenly interleaved.
func TestIMIX(t *testing.T) {
	z, err := ParseSizes("imix")
	if err != nil {
		t.Fatal(err)
	}
	count := map[int]int{}
	for _, n := range take(z, 120) {
		count[n]++
	}
	if count[64] != 70 || count[594] != 40 || count[1518] != 10 || len(count) != 3 {
		t.Errorf("of 120 frames %v, want 70, 40 and 10", count)
	}
	if m := z.Mean(); m < 361.8 || m > 361.9 {
		t.Errorf("the mean is %v, want 361.83", m)
	}
	run := 0
	for _, n := range take(z, 120) {
		if run++; n != 64 {
			run = 0
		}
		if run > 3 {
			t.Fatal("the small frames come in a heap")
		}
	}
}

func TestSizeRanges(t *testing.T) {
	for s, want := range map[string][]int{
		"64":             {64, 64, 64},
		"64-66":          {64, 65, 66, 64},
		"imix:100=1":     {100, 100},
		"imix:64=1,70=2": {70, 64, 70, 70, 64, 70},
	} {
		z, err := ParseSizes(s)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range take(z, len(want)) {
			if n != want[i] {
				t.Errorf("%s: frame %d has %d bytes, want %d", s, i, n, want[i])
			}
		}
	}
	z, err := ParseSizes("random:64-127")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range take(z, 1000) {
		if n < 64 || n > 127 {
			t.Fatalf("size %d", n)
		}
	}
}

func TestSizesRefused(t *testing.T) {
	for _, s := range []string{"", "63", "65554", "100-64", "random", "random:64", "imix:", "imix:64", "imix:64=0", "imix:64=5000", "x", "64-", "-64"} {
		if _, err := ParseSizes(s); err == nil || !strings.HasPrefix(err.Error(), "size: ") {
			t.Errorf("%q: %v", s, err)
		}
	}
	tm := UDP(false)
	for s, want := range map[string]string{"64": "", "63": "not a size"} {
		z, err := ParseSizes(s)
		if err == nil {
			_, err = Compile(tm, Options{Sizes: z, Reserve: 18})
		}
		if want == "" && err != nil || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", s, err)
		}
	}
	z, _ := ParseSizes("64-80")
	_, err := Compile(UDP(true), Options{Sizes: z, Reserve: 18})
	if want := "size: 64 bytes have no room for headers and payload; allowed: 84 bytes or more, FCS included"; err == nil || err.Error() != want {
		t.Errorf("UDP over IPv6 with a tag: %v, want %s", err, want)
	}
}
