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

// The tree as the rules see it: packages as the go command lists them for the
// platform that the tests run on, and files as they lie on disk, for whatever
// platform they are. All paths are relative to the root of the module and
// slashed.

// module is the path of the module, the prefix of every import path of ours.
const module = "loam"

// goPackage is what a rule wants to know of one package.
type goPackage struct {
	Path    string // "stack/tcp"; "." is the root
	Name    string
	Imports []string // of files that are not tests; ours relative as Path, others as written
}

// goFile is one parsed Go file.
type goFile struct {
	Path string // "stack/tcp/doc.go"
	Text []byte
	AST  *ast.File
	Fset *token.FileSet
}

// Dir is the folder that f lies in.
func (f *goFile) Dir() string { return path.Dir(f.Path) }

// IsTest reports whether the file is compiled into tests only.
func (f *goFile) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Line is the line number of pos.
func (f *goFile) Line(pos token.Pos) int { return f.Fset.Position(pos).Line }

// root is the folder with go.mod: tests run in the folder of their package.
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

// relative turns an import path of ours into a path below the root.
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
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Imports", "./...") // -e: what does not build is not our business
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

// packages lists the packages of this module.
func packages(t *testing.T) []goPackage {
	t.Helper()
	pkgs, err := listed()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return pkgs
}

// skipDir says which folders hold no source of ours: hidden ones, and test data,
// which may be wrong on purpose. Folders that the go command passes over because
// of their underscore (the files that go into the standard library) are ours.
func skipDir(name string) bool {
	return name == "testdata" || len(name) > 1 && name[0] == '.'
}

// files calls visit for every file of the tree, of modules inside it too.
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

// goFiles parses every Go file of the tree, once for all tests.
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

// parse is the one way from text to goFile; rules under test use it for their
// examples.
func parse(t *testing.T, path string, text []byte) *goFile {
	t.Helper()
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return &goFile{Path: path, Text: text, AST: tree, Fset: fset}
}

// isGenerated reports whether a program wrote the file.
func (f *goFile) isGenerated() bool { return ast.IsGenerated(f.AST) }

// report fails the test with one line for each complaint.
func report(t *testing.T, complaints []string) {
	t.Helper()
	for _, c := range complaints {
		t.Error(c)
	}
}
