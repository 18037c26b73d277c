package house

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The tree as the rules see it. Packages are listed by the go command for the platform of the test run.
// Files are those on disk, for all platforms. All paths are relative to the root of the module and use
// slashes.

// module is the path of the module, the prefix of its import paths.
const module = "loam"

// goPackage is the information about a package that the rules use.
type goPackage struct {
	Path    string // "stack/tcp"; "." is the root
	Name    string
	Imports []string // imports of the files that are not tests; relative like Path for this module, otherwise as written
}

// goFile is one parsed Go file.
type goFile struct {
	Path string // "stack/tcp/doc.go"
	Text []byte
	AST  *ast.File
	Fset *token.FileSet
}

// Dir returns the folder of f.
func (f *goFile) Dir() string { return path.Dir(f.Path) }

// IsTest reports whether the file is compiled only into tests.
func (f *goFile) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Line returns the line number of pos.
func (f *goFile) Line(pos token.Pos) int { return f.Fset.Position(pos).Line }

// root returns the folder with go.mod. Tests run in the folder of their package.
var root = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
	return "", err
})

func rootDir(t *testing.T) string {
	t.Helper()
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// relative converts an import path of this module to a path relative to the root.
func relative(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

var listed = sync.OnceValues(func() ([]goPackage, error) {
	dir, err := root()
	if err != nil {
		return nil, err
	}
	// -e ignores build errors, which are found by other steps
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Imports", "./...")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var pkgs []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Name string
			Imports          []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			return pkgs, nil
		} else if err != nil {
			return nil, err
		}
		pkg := goPackage{Path: relative(p.ImportPath), Name: p.Name}
		for _, imp := range p.Imports {
			if isOurs(imp) {
				imp = "./" + relative(imp)
			}
			pkg.Imports = append(pkg.Imports, imp)
		}
		pkgs = append(pkgs, pkg)
	}
})

func isOurs(importPath string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

// packages returns the packages of this module.
func packages(t *testing.T) []goPackage {
	t.Helper()
	pkgs, err := listed()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return pkgs
}

// skipDir reports whether a folder is skipped: hidden folders, and test data, which may be wrong on
// purpose. Folders with an underscore, which the go command skips, are included: they hold the files
// that go into the standard library.
func skipDir(name string) bool {
	return name == "testdata" || len(name) > 1 && name[0] == '.'
}

// files calls visit for every file of the tree, including modules inside it.
func files(t *testing.T, visit func(path string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(rootDir(t)), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && skipDir(d.Name()) {
			return fs.SkipDir
		}
		if d.Type().IsRegular() {
			visit(p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// read returns the text of a file of the tree.
func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(rootDir(t), path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var (
	parseOnce sync.Once
	parsed    []*goFile
)

// goFiles returns every Go file of the tree. The files are parsed once for all tests.
func goFiles(t *testing.T) []*goFile {
	t.Helper()
	parseOnce.Do(func() {
		files(t, func(p string) {
			if strings.HasSuffix(p, ".go") {
				parsed = append(parsed, parse(t, p, read(t, p)))
			}
		})
	})
	return parsed
}

// parse parses the text of a Go file. Tests of rules also use it for their examples.
func parse(t *testing.T, path string, text []byte) *goFile {
	t.Helper()
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return &goFile{Path: path, Text: text, AST: tree, Fset: fset}
}

// isGenerated reports whether the file is marked as generated.
func (f *goFile) isGenerated() bool { return ast.IsGenerated(f.AST) }

// report reports each complaint as an error of the test.
func report(t *testing.T, complaints []string) {
	t.Helper()
	for _, c := range complaints {
		t.Error(c)
	}
}
