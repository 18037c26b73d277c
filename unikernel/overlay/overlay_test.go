package overlay

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// goroot returns the GOROOT of the installed toolchain, whose source the rules must fit.
func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// The rules fit the installed toolchain. Each renamed function is declared again by a file of Loam with the
// same signature.
func TestGenerateInstalled(t *testing.T) {
	for parts, more := range map[Part][]rename{Personality: nil, Personality | Ring0: machineRenames} {
		files, err := Generate(goroot(t), runtime.Version(), parts)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range append(slices.Clone(renames), more...) {
			dir := r.file[:strings.LastIndexByte(r.file, '/')]
			if got := declared(t, files, dir, r, r.name()); len(got) != 1 || got[0] != r.signature {
				t.Errorf("%s: our files for %s declare %q", r.name(), dir, got)
			}
			if got := declared(t, Files{r.file: files[r.file]}, dir, r, r.to); len(got) != 1 {
				t.Errorf("%s: the edited file does not declare %s", r.name(), r.to)
			}
		}
	}
}

// declared returns the signatures with which the files of one folder declare the function
// of a given name, or the method of that name if the rule r renames a method.
func declared(t *testing.T, files Files, dir string, r rename, name string) []string {
	t.Helper()
	var found []string
	for path, src := range files {
		if path[:strings.LastIndexByte(path, '/')] != dir || !strings.HasSuffix(path, ".go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Name.Name != name || (fn.Recv != nil) != r.method() || r.method() && !r.isOf(fn.Recv) {
				continue
			}
			end := fn.End()
			if fn.Body != nil {
				end = fn.Body.Pos()
			}
			found = append(found, signature(src[fset.Position(fn.Pos()).Offset:fset.Position(end).Offset]))
		}
	}
	return found
}

const sample = `package p

// F is documented.
//
//go:nosplit
//go:linkname F
func F(a int) int {
	return G(a, 1) + other.G(a) // G twice: G
}

func G(a,
	b int) int {
	return a + b
}

type T struct {
	a int
}

func (t *T) F() int { return F(t.a) }

func (u U) F() int { return 0 }
`

// A renamed function keeps its body and its directives, except for its linkname. Calls among renamed
// functions are renamed. Of a method, only the declaration is renamed. A struct gets its field.
func TestApply(t *testing.T) {
	got, err := apply("p.go", []rename{
		{"p.go", "func F(a int) int", "oldF"},
		{"p.go", "func G(a, b int) int", "oldG"},
		{"p.go", "func (t *T) F() int", "oldF"},
	}, []field{{"p.go", "T", "more int"}, {"q.go", "T", "other int"}}, []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"//go:linkname F\n", "//\n",
		"func F(", "func oldF(",
		"return G(", "return oldG(",
		"func G(", "func oldG(",
		"func (t *T) F(", "func (t *T) oldF(",
		"type T struct {", "type T struct {\n\tmore int\n",
	).Replace(sample)
	if string(got) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// A rule that does not fit is an error that names the file and the function.
func TestApplyMismatch(t *testing.T) {
	for _, c := range []struct {
		name, signature, src, want string
	}{
		{"absent", "func H()", sample, "p.go: H: not declared"},
		{"other signature", "func F(a int64) int", sample, "p.go: F: declared as func F(a int) int"},
		{"no body", "func H()", "package p\nfunc H()\n", "p.go: H: declared without a body"},
		{"another type's method is not it", "func (u U) H()", "package p\ntype T int\nfunc (T) H() {}\n", "p.go: H: not declared"},
		{"a method is not it", "func H()", "package p\ntype T int\nfunc (T) H() {}\n", "p.go: H: not declared"},
		{"twice", "func H()", "package p\nfunc H() {}\nfunc H() {}\n", "p.go: H: declared twice"},
	} {
		_, err := apply("p.go", []rename{{"p.go", c.signature, "x"}}, nil, []byte(c.src))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	_, err := apply("p.go", []rename{{"p.go", "func F(a int) int", "x"}}, []field{{"p.go", "U", "b int"}}, []byte(sample))
	if err == nil || err.Error() != "p.go: U: no struct of that name is declared" {
		t.Errorf("a field of a type that is not there: %v", err)
	}
}

// Loam's code relies on certain text in the source of the standard library. A source file without this text is
// rejected.
func TestShapes(t *testing.T) {
	if err := checkShapes(goroot(t)); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "src", shapes[0].file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("\tMOVQ AX, 8(SP)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := checkShapes(dir); err == nil || !strings.Contains(err.Error(), shapes[0].file) {
		t.Errorf("another way to save registers: %v", err)
	}
}

// Releases are matched as a whole: go1.260 is not a patch release of go1.26.
func TestUnknownRelease(t *testing.T) {
	for version, known := range map[string]bool{
		"go1.26": true, "go1.26.8": true, "go1.27.4": true,
		"go1.25.1": false, "go1.260": false, "devel go1.28-abcdef": false, "": false,
	} {
		if _, ok := findRelease(version); ok != known {
			t.Errorf("%q: known is %v", version, ok)
		}
	}
	_, err := Generate(t.TempDir(), "go1.25.1", Personality)
	if !errors.Is(err, ErrUnknownGo) || !strings.Contains(err.Error(), "go1.25.1") {
		t.Errorf("error does not name the release: %v", err)
	}
	_, err = Generate(t.TempDir(), "go1.26.8", Personality)
	if !errors.Is(err, ErrUnknownGo) {
		t.Errorf("a GOROOT without source: %v", err)
	}
}

// The constant loamHostFD, from which the host's descriptors are numbered, has the same value in the two packages that
// declare it. They cannot import each other.
func TestDescriptorsAgree(t *testing.T) {
	files := Files{}
	if err := files.addOurs("_std"); err != nil {
		t.Fatal(err)
	}
	const want = "\tloamHostFD   = 1 << 24\n\tloamHostSpan = 1 << 24\n"
	for _, name := range []string{"runtime/loam_netpoll.go", "syscall/loam_hook.go"} {
		if !strings.Contains(string(files[name]), want) {
			t.Errorf("%s declares other numbers", name)
		}
	}
}

func TestInitOrder(t *testing.T) {
	src := InitOrder([]string{"sync", "errors"})
	if _, err := parser.ParseFile(token.NewFileSet(), "x.go", src, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(src), "\t\"errors\",\n\t\"sync\",\n") {
		t.Errorf("not sorted:\n%s", src)
	}
}

// The package comment of loam/unikernel/rt lists every name by which the edited standard library calls package rt or
// package process, or is called by them.
func TestSeamIsListed(t *testing.T) {
	doc, err := os.ReadFile("../rt/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed, wanted := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(doc)) {
		if f := strings.Fields(line); strings.HasPrefix(line, "//\t") && strings.Contains(line, ".go)") {
			listed[f[1]] = true
		}
	}
	for _, pattern := range []string{"../rt/*.go", "../rt/process/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, name := range files {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(src)) {
				if rest, ok := strings.CutPrefix(line, "//go:linkname "); ok {
					wanted[strings.Fields(rest)[0]] = true
				}
			}
		}
	}
	for name := range wanted {
		if !listed[name] {
			t.Errorf("%s is not listed", name)
		}
	}
	for name := range listed {
		if !wanted[name] {
			t.Errorf("%s is listed, and is not there", name)
		}
	}
}
