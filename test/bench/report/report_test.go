package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loam/test/bench/plan"
	"loam/test/bench/subject"
)

// few returns results with one row of each kind.
func few() *plan.Results {
	row := func(group, title, unit string, atOnce int, loam, gvisor float64) plan.Outcome {
		return plan.Outcome{
			Group: group,
			Row:   plan.Row{Title: title, Unit: unit, AtOnce: atOnce, Better: plan.Higher, Aim: &plan.Aim{Ratio: 1}},
			Figures: []plan.Figure{
				{Subject: subject.Loam, Median: loam},
				{Subject: subject.GVisor, Median: gvisor},
			},
			Ratio: loam / gvisor,
		}
	}
	return &plan.Results{
		Rows: []plan.Outcome{
			row(plan.OverTap, "bulk", "Gb/s", 0, 4, 2),
			row(plan.OverTap, "ping-pong", "µs", 0, 10, 40),
			row(plan.Echo, "1 ping", "µs", 1, 10, 20),
			row(plan.Echo, "20 pings", "µs", 20, 30, 90),
			row(plan.Clients, "1 client", "Mb/s", 1, 500, 400),
		},
		Hops:     []plan.Hop{{Shape: "a function call for each layer", Brief: "calls", NS: 40}, {Shape: "a batch", Brief: "batches", Batch: 8, NS: 50}},
		Failures: []plan.Failure{{Test: "tap/bulk", Subject: subject.Linux, Error: "no luck"}},
	}
}

func TestTable(t *testing.T) {
	text := string(table(few(), nil))
	for _, want := range []string{
		"| bulk | Gb/s | 4.00 | 2.00 | 2.00 × |",
		"| 1 ping | µs | 10.0 | 20.0 | 0.50 × |",
		"2 of 5 aims are met.",
		"- Over a tap: ping-pong: Loam is 0.25 times as good as gVisor; the aim is 1.00 times",
		"| a batch | 8 | 50.0 |",
		"- tap/bulk, Linux, run 1: no luck",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "| 20 pings") {
		t.Error("the table lists 20 pings, which are for the plot")
	}
}

// Results can be written and read back, and every plot with figures is drawn.
func TestWriteAndRead(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, few()); err != nil {
		t.Fatal(err)
	}
	again, err := Read(filepath.Join(dir, jsonFile))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(table(again, nil)), string(table(few(), nil)); got != want {
		t.Errorf("the table differs after reading: %s, want %s", got, want)
	}
	for _, file := range []string{"tap-bulk.svg", "tap-pingpong.svg", "echo.svg", "clients.svg", "hops.svg"} {
		if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(b), "</svg>") {
			t.Errorf("%s is not a plot (%v)", file, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "pipe-bulk.svg")); err == nil {
		t.Error("a plot was drawn without figures")
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0123: "0.012", 0.5: "0.50", 2.345: "2.35", 20.06: "20.1", 345.6: "346", 12345678: "12,345,678", 1002: "1,002",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) is %q, want %q", v, got, want)
		}
	}
}
