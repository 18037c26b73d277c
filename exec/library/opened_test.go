package library

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The C library opens libgcc_s.so.1 when a thread is cancelled. libgcc_s.so.1 is not a library that it is linked with.
func TestOpened(t *testing.T) {
	found, err := Host{}.Opened("/bin/ls")
	if err != nil {
		t.Fatal(err)
	}
	names := func(all []Library) (names []string) {
		for _, l := range all {
			names = append(names, l.Name)
		}
		return names
	}
	if !slices.Contains(names(found), "libgcc_s.so.1") {
		t.Errorf("%v", found)
	}
	needs, err := Host{}.Find("/bin/ls")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names(needs.Libraries) {
		if slices.Contains(names(found), name) {
			t.Errorf("%s is found again", name)
		}
	}
	for _, l := range found {
		if _, err := os.Stat(l.Path); err != nil {
			t.Error(err)
		}
	}
	if _, err := (Host{}).Opened("/none"); err == nil {
		t.Error("a program that does not exist")
	}
}

// Names of libraries are whole texts of a file, with a version.
func TestNamesInFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	text := "\x00liba.so.1\x00libb.so\x00/usr/lib/libc.so.6\x00see libd.so.1\x00libe-2.0.so.3.4\x00libf.so.x\x00libnss_%s.so.2\x00liba.so.1\x00libg.so.1"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := (Host{}).names(file); !slices.Equal(got, []string{"liba.so.1", "libe-2.0.so.3.4"}) {
		t.Errorf("%q", got)
	}
}

// A program imports a function itself or through a library.
func TestImports(t *testing.T) {
	for function, want := range map[string]bool{"malloc": true, "iconv_open": false} {
		if got := (Host{}).Imports("/bin/cat", function); got != want {
			t.Errorf("%s: %v", function, got)
		}
	}
}
