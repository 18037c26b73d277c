package debian

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The system's cpio reads back what was added to an archive.
func TestArchive(t *testing.T) {
	cpio, err := exec.LookPath("cpio")
	if err != nil {
		t.Skip("needs cpio: apt-get install cpio")
	}
	var a Archive
	a.Folder("folder")
	a.File("folder/file", []byte("text of an odd length"))
	a.File("empty", nil)
	cmd := exec.Command(cpio, "--extract", "--quiet")
	cmd.Dir = t.TempDir()
	cmd.Stdin = bytes.NewReader(a.End())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, want := range map[string]string{"folder/file": "text of an odd length", "empty": ""} {
		path := filepath.Join(cmd.Dir, name)
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
		if st, err := os.Stat(path); err == nil && st.Mode() != 0o755 {
			t.Errorf("%s: mode %v", name, st.Mode())
		}
	}
}
