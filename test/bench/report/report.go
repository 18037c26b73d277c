// Package report writes the results: a table in Markdown, plots in SVG, and the JSON file from which
// both are generated.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"loam/test/bench/plan"
	"loam/test/bench/subject"
)

// Names of the files that the report consists of.
const (
	jsonFile  = "results.json"
	tableFile = "README.md"
)

// Write writes all files into dir, and creates dir if necessary.
func Write(dir string, r *plan.Results) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, jsonFile), append(b, '\n'), 0o644); err != nil {
		return err
	}
	drawn, err := plots(dir, r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, tableFile), table(r, drawn), 0o644)
}

// Read reads the JSON file of an earlier run.
func Read(file string) (*plan.Results, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r plan.Results
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &r, nil
}

// title returns the display name of a subject.
func title(name string) string {
	switch name {
	case subject.Loam:
		return "Loam"
	case subject.LoamPacket:
		return "Loam, packet sockets"
	case subject.LoamRing:
		return "Loam, packet rings"
	case subject.LoamXDP:
		return "Loam, AF_XDP"
	case subject.LoamRelay:
		return "Loam, relayed"
	case subject.LoamBound:
		return "Loam, flood dropped when read"
	case subject.LoamSieve:
		return "Loam, floods filtered"
	case subject.GVisor:
		return "gVisor"
	case subject.GVisorVnet:
		return "gVisor, with Loam's TAP link"
	case subject.Linux:
		return "Linux"
	case subject.LinuxProxy:
		return "Linux behind a bare proxy"
	}
	return name
}

// order is the order of the subjects in the columns of tables and in the bars of plots.
var order = []string{subject.Loam, subject.LoamPacket, subject.LoamRing, subject.LoamXDP, subject.LoamRelay, subject.LoamBound, subject.LoamSieve, subject.GVisor, subject.GVisorVnet, subject.Linux, subject.LinuxProxy}

// number formats a figure with three significant digits and without an exponent.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return grouped(int64(v + 0.5))
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// grouped formats n with commas between thousands.
func grouped(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
