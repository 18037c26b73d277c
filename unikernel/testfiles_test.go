package unikernel

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A test gets the testdata folders of its parent folders, up to the module's root.
func TestSharedFolders(t *testing.T) {
	top := t.TempDir()
	for _, name := range []string{"testdata", "m/testdata", "m/a/testdata", "m/a/b/testdata", "m/c/testdata", "src/time", "lib/time"} {
		if err := os.MkdirAll(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "m/go.mod"), []byte("module m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "src/go.mod"), []byte("module std\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := sharedFolders(filepath.Join(top, "m/a/b"))
	want := []string{filepath.Join(top, "m/a/testdata"), filepath.Join(top, "m/testdata")}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	got = testVolumeNames(testVolumes("/bin/x.test", filepath.Join(top, "src/time"), Machine))
	if want := []string{filepath.Join(top, "src"), filepath.Join(top, "src/time"), filepath.Join(top, "lib/time"), "/bin/x.test"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"src", "testdata"} { // a module's root, and a folder outside any module, share nothing
		alone := filepath.Join(top, name)
		if got := testVolumeNames(testVolumes("x.test", alone, Process)); len(got) == 0 || got[0] != alone {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func testVolumeNames(all []Volume) (names []string) {
	for _, v := range all {
		names = append(names, v.Guest)
	}
	return names
}
