package unikernel

import (
	"os"
	"testing"
	"time"
)

// The go command does not index packages with files younger than two seconds. Up to Go 1.26.4, it then read such
// packages without the overlay, and so found none of Loam's packages.
func TestOverlayIsNotNew(t *testing.T) {
	start := time.Now()
	c := cache(t.TempDir())
	tools, err := findToolchain(t.Context(), c, ".")
	if err != nil {
		t.Fatal(err)
	}
	s, err := prepareStd(t.Context(), c, tools, "", Process)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range s.replace {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if start.Sub(info.ModTime()) < 2*time.Second {
			t.Errorf("%s is of %v, when the build began at %v", name, info.ModTime(), start)
		}
	}
}
