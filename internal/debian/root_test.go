package debian

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMakeRootTMPDIR: programs in the root folder find the folder that TMPDIR names.
func TestMakeRootTMPDIR(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: unshare makes a namespace of mounts")
	}
	name := filepath.Join(t.TempDir(), "image")
	t.Setenv("TMPDIR", t.TempDir())
	if err := MakeRoot(t.Context(), name, `printf %s "$TMPDIR" >"$2"`); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(name); string(got) != "/tmp" {
		t.Errorf("TMPDIR is %q", got)
	}
}
