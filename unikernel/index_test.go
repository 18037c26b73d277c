package unikernel

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"loam/unikernel/overlay"
)

// A second run takes the overlay of the standard library from the index, without generating it. The index is not used
// if the folder of the overlay is missing, or if one of the files that the rules read has changed.
func TestIndex(t *testing.T) {
	c := cache(t.TempDir())
	tools, err := findToolchain(t.Context(), c, ".")
	if err != nil {
		t.Fatal(err)
	}
	path := indexPath(c, tools, Process)
	if path == "" {
		t.Fatal("this executable has no build ID")
	}
	if path == indexPath(c, tools, Machine) {
		t.Error("both platforms have one index")
	}
	if readIndex(c, tools, path) != nil {
		t.Error("an index that does not exist was read")
	}
	made, err := prepareStd(t.Context(), c, tools, "", Process)
	if err != nil {
		t.Fatal(err)
	}
	read := readIndex(c, tools, path)
	if read == nil {
		t.Fatal("the index is not used")
	}
	if read.hash != made.hash || !maps.Equal(read.replace, made.replace) {
		t.Errorf("%s with %d files, not %s with %d", read.hash, len(read.replace), made.hash, len(made.replace))
	}

	// other is a copy of the GOROOT. The test changes one of its files.
	other := *tools
	other.GOROOT = t.TempDir()
	for _, name := range append(made.names, overlay.Read()...) {
		src, err := os.ReadFile(filepath.Join(tools.GOROOT, "src", name))
		if err != nil {
			continue // the overlay adds this file, so no file of the GOROOT corresponds to it
		}
		if err := writeFile(filepath.Join(other.GOROOT, "src", name), src); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeIndex(&other, path, made.hash, made.names); err != nil {
		t.Fatal(err)
	}
	if readIndex(c, &other, path) == nil {
		t.Error("the index of the copy is not used")
	}
	changed := filepath.Join(other.GOROOT, "src", overlay.Read()[0])
	if err := os.WriteFile(changed, []byte("package x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if readIndex(c, &other, path) != nil {
		t.Error("the index is used although a file of the toolchain has changed")
	}
	if err := os.RemoveAll(c.path("std", made.hash)); err != nil {
		t.Fatal(err)
	}
	if readIndex(c, tools, path) != nil {
		t.Error("the index is used although the std folder is missing")
	}
}
