package sequence

import "testing"

func TestSeqOrder(t *testing.T) {
	for _, x := range []struct {
		s, t Seq
		less bool
	}{
		{1, 2, true},
		{2, 1, false},
		{5, 5, false},
		{0xffffffff, 0, true}, // across the wrap
		{0, 0xffffffff, false},
		{0xfffffff0, 0x10, true},
		{0x7fffffff, 0x80000000, true},
		{0, 0x7fffffff, true},  // just below half of the number space
		{0, 0x80000001, false}, // just above half of the number space
	} {
		if got := x.s.Less(x.t); got != x.less {
			t.Errorf("%#x < %#x is %v", x.s, x.t, got)
		}
		if got, want := x.s.LessEq(x.t), x.less || x.s == x.t; got != want {
			t.Errorf("%#x <= %#x is %v", x.s, x.t, got)
		}
	}
}

func TestSeqArithmetic(t *testing.T) {
	s := Seq(0xfffffffe)
	if s.Add(4) != 2 || Seq(2).Add(-4) != s {
		t.Error("Add does not wrap")
	}
	if Seq(2).Sub(s) != 4 || s.Sub(2) != -4 {
		t.Error("Sub does not wrap")
	}
	if Max(s, 2) != 2 || Min(s, 2) != s {
		t.Error("min and max do not wrap")
	}
	for _, x := range []struct {
		s, from, to Seq
		in          bool
	}{
		{0xffffffff, s, 2, true}, {0, s, 2, true}, {2, s, 2, false}, {s, s, 2, true}, {0xfffffffd, s, 2, false}, {7, 7, 7, false},
	} {
		if x.s.In(x.from, x.to) != x.in {
			t.Errorf("%#x in [%#x, %#x) is %v", x.s, x.from, x.to, !x.in)
		}
	}
}
