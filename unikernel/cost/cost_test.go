package cost

import (
	"math"
	"os"
	"os/exec"
	"testing"
	"time"
)

// One short run of the real thing: every call is there, on both systems, and no
// figure is nonsense. What they are depends on the machine.
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
			if !(v > 0 && v < 1e9) { // a call that takes a second was not made
				t.Errorf("%+v", row)
			}
		}
	}
	if math.IsNaN(r.Hook) || math.Abs(r.Hook) > 1e6 {
		t.Errorf("the hook takes %v ns", r.Hook)
	}
}

// The least of all rounds counts, and the hook is what remains of a refused call
// without the calling.
func TestCompare(t *testing.T) {
	linux, loam := costs{}, costs{}
	for _, once := range []string{`{"nothing":2,"epoll_create1":200}`, `{"nothing":3,"epoll_create1":100}`} {
		if err := linux.measure(echo(once)); err != nil {
			t.Fatal(err)
		}
	}
	if err := loam.measure(echo(`{"nothing":2,"epoll_create1":10}`)); err != nil {
		t.Fatal(err)
	}
	r := compare(linux, loam, 2)
	if r.Hook != 8 || r.Rows[0].Linux != 2 || r.Rows[1].Linux != 100 || r.Rows[1].Ratio != 10 {
		t.Errorf("%+v", r)
	}
}

// A program that fails, or prints something else, is an error that says so.
func TestMeasureFails(t *testing.T) {
	for _, cmd := range []*exec.Cmd{echo("hello"), exec.Command("false"), exec.Command(os.DevNull)} {
		if err := (costs{}).measure(cmd); err == nil {
			t.Errorf("%v: no error", cmd)
		}
	}
}

func echo(text string) *exec.Cmd { return exec.Command("echo", text) }

// BenchmarkSyscall reports what "loam bench syscall" prints: the hook alone, and a
// write to /dev/null on both. An operation is the whole
// measurement.
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
