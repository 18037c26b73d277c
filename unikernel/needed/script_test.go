package needed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// script writes an executable file.
func script(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Started names the script and each interpreter, also the one that env(1) finds.
func TestInterpretersOfScripts(t *testing.T) {
	direct := script(t, "direct", "#!/bin/sh -e\n")
	for _, c := range []struct {
		path string
		want []string
	}{
		{"/bin/sh", []string{"/bin/sh"}},
		{direct, []string{direct, "/bin/sh"}},
		{script(t, "nested", "#!"+direct+" x\n"), []string{direct, "/bin/sh"}},
		{script(t, "found", "#!/usr/bin/env sh\n"), []string{"/usr/bin/env", "/bin/sh"}},
		{script(t, "split", "#!/usr/bin/env -S A=b sh -e\n"), []string{"/usr/bin/env", "/bin/sh"}},
		{script(t, "env", "#!/usr/bin/env\n"), []string{"/usr/bin/env"}},
	} {
		t.Setenv("PATH", "/bin")
		want := c.want
		if want[0] != c.path {
			want = slices.Insert(slices.Clone(want), 0, c.path)
		}
		if got, err := Started(c.path); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", c.path, got, err, want)
		}
	}
}

// A script that cannot start gets one line that names the cause.
func TestScriptsThatCannotStart(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	again := filepath.Join(os.Getenv("PATH"), "again")
	if err := os.WriteFile(again, []byte("#!/usr/bin/env again\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{script(t, "none", "#!/none/sh\n"), "the interpreter /none/sh, which does not exist"},
		{script(t, "unfound", "#!/usr/bin/env none\n"), "the interpreter none, which is not in PATH"},
		{script(t, "empty", "#!\n"), "its first line"},
		{again, "env starts scripts that start env again"},
	} {
		if _, err := Started(c.path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
}
