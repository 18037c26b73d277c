package house

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// requireLines matches the commands in docs/use/library.md that make another module import this one.
var requireLines = regexp.MustCompile(`(?m)^\$ (go (?:mod edit -replace=loam|get loam).*)$`)

// Another module, created by the commands in docs/use/library.md, can run the example of the stack. It downloads
// nothing: the dependencies of Loam's commands are not dependencies of a module that imports only the
// stack.
func TestModuleOutside(t *testing.T) {
	dir := t.TempDir()
	example := bytes.Replace(read(t, "stack/example_test.go"), []byte("package stack_test"), []byte("package outside_test"), 1)
	if err := os.WriteFile(filepath.Join(dir, "outside_test.go"), example, 0o644); err != nil {
		t.Fatal(err)
	}
	lines := requireLines.FindAllSubmatch(read(t, "docs/use/library.md"), -1)
	if len(lines) != 2 {
		t.Fatalf("the document has %d lines for that", len(lines))
	}
	commands := []string{"go mod init example.org/outside"}
	for _, l := range lines {
		commands = append(commands, strings.Replace(string(l[1]), "$LOAM", rootDir(t), 1))
	}
	for _, c := range append(commands, "go test -run=Example -v .") {
		args := strings.Fields(c)
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOMODCACHE="+t.TempDir(), "GOFLAGS=-modcacherw")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", c, err, out)
		}
		if strings.HasPrefix(c, "go test") && !strings.Contains(string(out), "PASS: Example") {
			t.Errorf("%s ran no example:\n%s", c, out)
		}
	}
}
