package unikernel

import (
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkPrepare measures the time before the process of an unchanged program is started, which includes a build with
// Loam's overlay. For comparison it measures a plain go build of the same program. check is the check of a new executable,
// which each start of a test binary includes.
func BenchmarkPrepare(b *testing.B) {
	folder, err := filepath.Abs("testdata/guest/once")
	if err != nil {
		b.Fatal(err)
	}
	target := Target{Args: []string{folder}, Platform: Process}
	var plain, plan, build, places, check time.Duration
	prepare := func() {
		begin := time.Now()
		p, err := NewPlan(b.Context(), target)
		if err != nil {
			b.Fatal(err)
		}
		planned := time.Now()
		if err := p.Build(b.Context()); err != nil {
			b.Fatal(err)
		}
		built := time.Now()
		if _, err := placesOf(p.Program); err != nil {
			b.Fatal(err)
		}
		found := time.Now()
		if err := checkTest(p.Program); err != nil {
			b.Fatal(err)
		}
		checked := time.Now()
		if _, err := p.at.tools.run(b.Context(), folder, "build", "-o", filepath.Join(b.TempDir(), "plain"), "."); err != nil {
			b.Fatal(err)
		}
		plain += time.Since(checked)
		check += checked.Sub(found)
		plan += planned.Sub(begin)
		build += built.Sub(planned)
		places += found.Sub(built)
	}
	prepare() // the first build fills the caches
	plain, plan, build, places, check = 0, 0, 0, 0, 0
	for b.Loop() {
		prepare()
	}
	report := func(name string, d time.Duration) {
		b.ReportMetric(float64(d.Microseconds())/1e3/float64(b.N), name)
	}
	report("plan-ms", plan)
	report("build-ms", build)
	report("places-ms", places)
	report("check-ms", check)
	report("plain-build-ms", plain)
}
