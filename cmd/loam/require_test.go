//go:build !race

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// modulesWithLoam are modules that require a module named loam, each in a different way. The required module is not a
// version of Loam that the command has.
var modulesWithLoam = map[string]string{
	"loam/go.mod":     "module loam\n\ngo 1.24\n",
	"loam/stack/s.go": "package stack\n\nconst X = \"another stack\"\n",

	"replaced/go.mod": appWithLoam + replacesLoam,

	"workspace/go.mod":  appInWorkspace,
	"workspace/go.work": "go 1.24\n\nuse (\n\t.\n\t../loam\n)\n",

	"vendored/go.mod":                 appWithLoam + replacesLoam,
	"vendored/vendor/modules.txt":     "# loam v0.0.0 => ../loam\n## explicit; go 1.24\nloam/stack\n# loam => ../loam\n",
	"vendored/vendor/loam/stack/s.go": "package stack\n\nconst X = \"another stack\"\n",
}

const (
	appInWorkspace = "module example.com/app\n\ngo 1.24\n"
	appWithLoam    = appInWorkspace + "\nrequire loam v0.0.0\n"
	replacesLoam   = "\nreplace loam => ../loam\n"
)

// filesWithLoam are the program and the test of each module.
var filesWithLoam = map[string]string{
	"main.go": `package main

import (
	"fmt"
	"net"

	"loam/stack"
)

func main() {
	_, err := net.InterfaceByName("lo")
	fmt.Println(stack.X, err)
}
`,
	"main_test.go": `package main

import (
	"net"
	"testing"

	"loam/stack"
)

func TestStack(t *testing.T) {
	_, err := net.InterfaceByName("lo")
	t.Log(stack.X, err)
}
`,
}

// A program that requires a module named loam is built with that module, and runs on the packages that the loam
// command carries.
func TestProgramRequiresLoam(t *testing.T) {
	loam := command(t)
	dir := t.TempDir()
	write := func(files map[string]string, below string) {
		for name, text := range files {
			path := filepath.Join(dir, below, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(modulesWithLoam, "")
	for _, way := range []string{"replaced", "workspace", "vendored"} {
		write(filesWithLoam, way)
		for verb, args := range map[string][]string{
			"run":      {"run", "--net", "none", "--platform", "process", "."},
			"run, vm":  {"run", "--net", "none", "--platform", "vm", "."},
			"test":     {"test", "--platform", "process", "-v", "."},
			"test, vm": {"test", "--platform", "vm", "-v", "."},
		} {
			t.Run(way+", "+verb, func(t *testing.T) {
				cmd := loam(args...)
				cmd.Dir = filepath.Join(dir, way)
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "another stack <nil>\n") {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
		t.Run(way+", build", func(t *testing.T) {
			cmd := loam("build", "-o", filepath.Join(t.TempDir(), "image"), ".")
			cmd.Dir = filepath.Join(dir, way)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
