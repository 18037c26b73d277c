package plan

import (
	"math"
	"testing"

	"loam/test/bench/load"
	"loam/test/bench/subject"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want float64
	}{
		{nil, 0},
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(c.xs); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.xs, got, c.want)
		}
	}
}

// A ratio above 1 is good for Loam, whether higher or lower figures are better. A repetition that one
// side lacks does not count.
func TestRatio(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		better       Better
		ours, theirs []float64
		want         float64
	}{
		{Higher, []float64{4}, []float64{2}, 2},
		{Lower, []float64{4}, []float64{2}, 0.5},
		{Higher, []float64{4, nan, 9}, []float64{2, 1, 3}, 2.5},
		{Higher, []float64{4, 100}, []float64{2}, 2},
		{Higher, nil, []float64{2}, 0},
		{Lower, []float64{0}, []float64{2}, 0},
	} {
		if got := ratio(c.better, c.ours, c.theirs); got != c.want {
			t.Errorf("ratio of %v and %v, %s is better: %v, want %v", c.ours, c.theirs, c.better, got, c.want)
		}
	}
}

// If a repetition fails, the figures of the others keep their indices, so that the ratio compares runs
// of the same repetition.
func TestFailedRunKeepsPairs(t *testing.T) {
	test := Test{Name: "t", Subjects: []string{subject.Loam, subject.GVisor}, Rows: []Row{{Sample: "s", Better: Higher}}}
	figures := map[key][]float64{}
	for rep, ours := range []load.Samples{{"s": 10}, nil, {"s": 30}} {
		keep(figures, test, subject.Loam, rep, ours)
		keep(figures, test, subject.GVisor, rep, load.Samples{"s": 5 * float64(rep+1)})
	}
	o := rows([]Test{test}, figures)[0]
	if o.Ratio != 2 {
		t.Errorf("ratio is %v, want 2: 10 to 5 and 30 to 15", o.Ratio)
	}
	loam, _ := o.Of(subject.Loam)
	if loam.Median != 20 || len(loam.Runs) != 2 {
		t.Errorf("Loam's figure is %+v, want the median 20 of two runs", loam)
	}
}

func TestAims(t *testing.T) {
	for _, c := range []struct {
		name       string
		aim        *Aim
		ratio      float64
		loam       float64
		met, known bool
	}{
		{"as good as asked", &Aim{Ratio: 1}, 1, 5, true, true},
		{"worse than gVisor", &Aim{Ratio: 1}, 0.9, 5, false, true},
		{"better, but above the bound", &Aim{Ratio: 1, AtMost: 4}, 3, 5, false, true},
		{"within the bound", &Aim{Ratio: 1, AtMost: 5}, 3, 5, true, true},
		{"nothing asked", nil, 0.1, 5, false, false},
		{"nothing to compare with", &Aim{Ratio: 1}, 0, 5, false, false},
	} {
		o := Outcome{Row: Row{Aim: c.aim}, Ratio: c.ratio, Figures: []Figure{{Subject: subject.Loam, Median: c.loam}}}
		if met, known := o.Met(); met != c.met || known != c.known {
			t.Errorf("%s: met %v, known %v; want %v, %v", c.name, met, known, c.met, c.known)
		}
	}
}

// Every test names existing subjects, an existing place and an existing load, and its rows differ.
func TestTheList(t *testing.T) {
	names := map[string]bool{}
	for _, test := range Tests(10) {
		if names[test.Name] {
			t.Errorf("two tests are called %s", test.Name)
		}
		names[test.Name] = true
		if _, err := load.ByName(test.Spec.Load, 10); err != nil {
			t.Errorf("%s: %v", test.Name, err)
		}
		samples := map[string]bool{}
		for _, row := range test.Rows {
			if samples[row.Sample] {
				t.Errorf("%s: two rows for the sample %s", test.Name, row.Sample)
			}
			samples[row.Sample] = true
			if row.Better != Higher && row.Better != Lower {
				t.Errorf("%s: %s: nobody knows what is better", test.Name, row.Title)
			}
		}
	}
}
