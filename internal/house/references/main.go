// Command references counts the references between the files of packages, and the share of them that points back in the
// best reading order that it finds (decision 62):
//
//	go run ./internal/house/references ./posix ./posix/...
//
// A reference is a use of a function, method, field, type, constant or variable that another file of the same package
// declares. Tests are not counted. A reference from a file to a later one points back: the reader does not know yet what it
// names. The order is that of Eades, Lin and Smyth (1993), which keeps the weight of such references low. Packages cannot
// refer to each other in cycles, so references between packages never point back.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// listed is a package as go list describes it.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	DepOnly                 bool
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("references: ")
	out, err := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly"}, os.Args[1:]...)...).Output()
	if err != nil {
		log.Fatalf("go list: %v: name packages that build", err)
	}
	exports := map[string]string{}
	var asked []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			log.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			asked = append(asked, p)
		}
	}
	fmt.Println("package                 files  lines  references   back")
	for _, p := range asked {
		lines, refs, err := count(p, exports)
		if err != nil {
			log.Fatal(err)
		}
		total, back := 0, backward(refs)
		for _, n := range refs {
			total += n
		}
		fmt.Printf("%-22s %6d %6d %11d %5.1f %%\n", p.ImportPath, len(p.GoFiles), lines, total, 100*float64(back)/float64(max(total, 1)))
	}
}

// edge is a pair of files: the first refers to the second.
type edge [2]string

// count type-checks a package and counts its lines and the references between its files.
func count(p listed, exports map[string]string) (lines int, refs map[edge]int, err error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
		if err != nil {
			return 0, nil, err
		}
		files = append(files, f)
		lines += fset.File(f.Pos()).LineCount()
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{Importer: importer.ForCompiler(fset, "gc", open)}).Check(p.ImportPath, fset, files, info)
	if err != nil {
		return 0, nil, err
	}
	refs = map[edge]int{}
	for id, o := range info.Uses {
		if o.Pkg() != pkg || isLocal(o) {
			continue
		}
		from, to := fset.File(id.Pos()).Name(), fset.File(o.Pos()).Name()
		if from != to {
			refs[edge{from, to}]++
		}
	}
	return lines, refs, nil
}

// isLocal reports whether an object is declared inside a function.
func isLocal(o types.Object) bool {
	switch o := o.(type) {
	case *types.Func:
		return false
	case *types.Var:
		return !o.IsField() && o.Parent() != o.Pkg().Scope()
	}
	return o.Parent() != o.Pkg().Scope()
}

// backward returns the number of references that point back. It takes the files one by one: those that refer to no other
// file are read first, those that no other file refers to last, and otherwise the one with the largest surplus of references
// to it is read next.
func backward(refs map[edge]int) (back int) {
	var left []string
	for e := range refs {
		left = append(left, e[0], e[1])
	}
	slices.Sort(left)
	left = slices.Compact(left)
	read := map[string]bool{}
	for len(left) > 0 {
		in, out := map[string]int{}, map[string]int{}
		for e, n := range refs {
			if !read[e[0]] && !read[e[1]] {
				out[e[0]] += n
				in[e[1]] += n
			}
		}
		best := 0
		for i, f := range left {
			if out[f] == 0 {
				best = i
				break
			}
			if in[f]-out[f] > in[left[best]]-out[left[best]] {
				best = i
			}
		}
		next := left[best]
		back += out[next] // files that are read later: these references point back
		read[next] = true
		left = slices.Delete(left, best, best+1)
	}
	return back
}
