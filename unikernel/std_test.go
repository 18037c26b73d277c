package unikernel

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The go command does not index packages with files of the last two seconds; up to
// Go 1.26.4 it then looked past the overlay and found none of Loam's.
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

// In Loam's own tree a program is built without the modules that Loam's commands are linked
// with: the first page that anybody runs here asks for no network.
func TestCheckoutNeedsNoModules(t *testing.T) {
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOPROXY", "off")
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	c := cache(t.TempDir())
	tools, err := findToolchain(t.Context(), c, checkout)
	if err != nil {
		t.Fatal(err)
	}
	s, err := prepareStd(t.Context(), c, tools, checkoutOf(tools, checkout), Process)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.replace) == 0 {
		t.Error("nothing is replaced")
	}
}
