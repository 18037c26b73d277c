package main

import (
	"slices"
	"strings"
	"testing"
)

// Flags of go test may have one dash. Flags of loam, values, and arguments after -args stay unchanged.
func TestGoStyle(t *testing.T) {
	for given, want := range map[string]string{
		"":                         "",
		"run -v .":                 "run -v .",
		"test":                     "test",
		"test -v -run X ./...":     "test --v --run X ./...",
		"test --v --run=X":         "test --v --run=X",
		"test -run -short -short":  "test --run -short --short",
		"test -test.run=X -test.v": "test --run=X --v",
		"test net -count 1":        "test net --count 1",
		"test -e A=B --net none":   "test -e A=B --net none",
		"test . -args -v -run":     "test . -- -v -run",
		"test . -- -v":             "test . -- -v",
		"test -race":               "test --race",
		"test -unknown -h":         "test -unknown -h",
		"test -run":                "test --run",
		"run -tags a,b -v x:/x .":  "run --tags a,b -v x:/x .",
		"run . -- -tags x":         "run . -- -tags x",
		"run -args .":              "run -args .",
		"build -ldflags=-s -o f .": "build --ldflags=-s -o f .",
	} {
		if got := goStyle(strings.Fields(given)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}

// go test gets the arguments of loam test in the given order.
func TestGoFlagsPass(t *testing.T) {
	cmd := newTest()
	var given goFlags
	cmd.ResetFlags()
	given.register("test", cmd.Flags())
	if err := cmd.ParseFlags(goStyle(strings.Fields("test -run A -v=test2json -short -count=2 -run B net"))); err != nil {
		t.Fatal(err)
	}
	want := []string{"-run=A", "-v=test2json", "-short=true", "-count=2", "-run=B"}
	if !slices.Equal(given.given, want) {
		t.Errorf("passed on: %q, want %q", given.given, want)
	}
}

func TestRefusedGoFlags(t *testing.T) {
	for args, want := range map[string]string{
		"test -race .":       "needs cgo",
		"test -vet=all .":    "go vet does",
		"test -c .":          "does not run alone",
		"test -fuzz=F .":     "starts worker processes",
		"test -exec=x .":     "loam runs the test binaries",
		"test --net tun .":   "--net user",
		"run -race .":        "needs cgo",
		"build -overlay x .": "overlay of its own",
		"test --platform x":  "--platform auto",
	} {
		_, errs, status := loam(t, goStyle(strings.Fields(args))...)
		if status != statusUsage || !strings.Contains(errs, want) {
			t.Errorf("loam %s: status %d, %q; want %q", args, status, errs, want)
		}
	}
}
