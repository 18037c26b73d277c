//go:build !race

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// selfTest is a package whose test starts its own binary, as tests of Go programs do.
const selfTest = `package selftest

import (
	"os"
	"os/exec"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("HELPER") != "" {
		os.Stdout.WriteString("the helper " + tagged)
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func TestSelf(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=TestNothing")
	cmd.Env = append(os.Environ(), "HELPER=1")
	out, err := cmd.Output()
	if string(out) != "the helper with tags" || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("%q, %v", out, err)
	}
	if os.Getenv("LOAM_TEST_FLAGS") != "" {
		t.Error("a variable of Loam is visible")
	}
}
`

// Tests that start their own binary pass in a virtual machine. As a process, the error says what to do.
func TestTestsStartThemselves(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module example.com/selftest\n\ngo 1.26\n",
		"self_test.go": selfTest,
		"tags_test.go": "//go:build special\n\npackage selftest\n\nconst tagged = \"with tags\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	loam := command(t)
	test := func(platform string) ([]byte, error) {
		cmd := loam("test", "--platform", platform, "--net", "none", "-tags=special", ".")
		cmd.Dir = dir
		return cmd.CombinedOutput()
	}
	if out, err := test("vm"); err != nil || !strings.HasPrefix(string(out), "ok  \texample.com/selftest\t") {
		t.Errorf("%v: %s", err, out)
	}
	const want = "a process on Loam cannot start programs: use --platform vm"
	if out, err := test("process"); err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%v: %s, want %q", err, out, want)
	}
}

// A program in ring 0 starts a program of the host with its libraries.
func TestRunWithProgram(t *testing.T) {
	file := program(t, `package main

import (
	"fmt"
	"os/exec"
)

func main() {
	out, err := exec.Command("/usr/bin/printf", "%s and %s", "one", "two").CombinedOutput()
	fmt.Printf("%s %v\n", out, err)
}
`)
	out, err := command(t)("run", "--platform", "vm", "--net", "none", "-v", "/usr/bin/printf:/usr/bin/printf", file).CombinedOutput()
	if err != nil || string(out) != "one and two <nil>\n" {
		t.Errorf("%v: %s", err, out)
	}
	native, err := exec.Command("/usr/bin/printf", "%s and %s", "one", "two").Output()
	if err != nil || string(native) != "one and two" {
		t.Errorf("on Linux: %v: %s", err, native)
	}
}
