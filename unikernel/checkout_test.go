package unikernel

import (
	"os"
	"path/filepath"
	"testing"
)

// A checkout has Loam's packages; a module of somebody else that is named loam has not, and is a
// program like any other.
func TestCheckoutOf(t *testing.T) {
	elsewhere := t.TempDir()
	gomod := filepath.Join(elsewhere, "go.mod")
	if err := os.WriteFile(gomod, []byte("module loam\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := checkoutOf(&toolchain{GOMOD: gomod}, elsewhere); got != "" {
		t.Errorf("a module of the same name is taken for a checkout: %q", got)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got := checkoutOf(&toolchain{GOMOD: filepath.Join(filepath.Dir(here), "go.mod")}, here); got != here {
		t.Errorf("the checkout of %s is %q", here, got)
	}
}
