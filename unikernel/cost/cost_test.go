package cost

import (
	"math"
	"os/exec"
	"testing"
	"time"
)

// A short run measures every system call on Loam and on Linux, and each time is above zero. The times themselves depend on the
// machine.
func TestMeasure(t *testing.T) {
	r, err := Measure(t.Context(), Options{Rounds: 1, Each: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != len(descriptions) {
		t.Errorf("%d rows, want %d", len(r.Rows), len(descriptions))
	}
	for _, row := range r.Rows {
		for _, v := range []float64{row.Linux, row.Loam, row.Ratio} {
			if !(v > 0 && v < 1e9) { // one second is far above any call's time
				t.Errorf("%+v", row)
			}
		}
	}
	if math.IsNaN(r.Hook) || math.Abs(r.Hook) > 1e6 {
		t.Errorf("the hook takes %v ns", r.Hook)
	}
}

// Measurements of several rounds are reduced to their minimum. The cost of the hook in package syscall is the time of a
// rejected call minus the time of an empty function.
func TestCompare(t *testing.T) {
	linux, loam := costs{}, costs{}
	for _, once := range []string{`{"nothing":2,"epoll_create1":200}`, `{"nothing":3,"epoll_create1":100}`} {
		if err := linux.measure([]byte(once), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := loam.measure([]byte(`{"nothing":2,"epoll_create1":10}`), nil); err != nil {
		t.Fatal(err)
	}
	r := compare(linux, loam, 2)
	if r.Hook != 8 || r.Rows[0].Linux != 2 || r.Rows[1].Linux != 100 || r.Rows[1].Ratio != 10 {
		t.Errorf("%+v", r)
	}
}

// Measuring fails if the program exits with an error, or if its output is not the expected JSON.
func TestMeasureFails(t *testing.T) {
	if err := (costs{}).measure([]byte("hello"), nil); err == nil {
		t.Error("hello: no error")
	}
	if err := (costs{}).measure(exec.Command("false").Output()); err == nil {
		t.Error("a program that fails: no error")
	}
}

// BenchmarkSyscall reports part of what "loam bench syscall" prints: the cost of the hook in package
// syscall, and a write to /dev/null on both systems. An operation is the whole measurement.
func BenchmarkSyscall(b *testing.B) {
	for b.Loop() {
		r, err := Measure(b.Context(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(r.Hook, "hook-ns")
		for _, row := range r.Rows {
			if row.Call == "write" {
				b.ReportMetric(row.Loam, "loam-ns")
				b.ReportMetric(row.Linux, "linux-ns")
			}
		}
	}
}
