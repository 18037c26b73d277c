package overlay

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"sort"
	"strings"
)

// rename is one edit rule: a function of the standard library keeps its body and gets another name. A
// function of Loam takes its place and can still call it. A rule is checked before it is applied: the file
// must declare the function exactly once, with the signature that the replacement was written for.
type rename struct {
	file      string // path of the file below GOROOT/src, with slashes
	signature string // "func name(params) results" as gofmt writes it; for a method, with its receiver
	to        string // new name of the function
}

// name returns the name of the function that r renames.
func (r rename) name() string {
	s := strings.TrimPrefix(r.signature, "func ")
	if r.method() {
		s = strings.TrimSpace(s[strings.IndexByte(s, ')')+1:])
	}
	return s[:strings.IndexByte(s, '(')]
}

// method reports whether r renames a method.
func (r rename) method() bool { return strings.HasPrefix(r.signature, "func (") }

// field is a field that is added to a struct of the standard library.
type field struct {
	file string // path of the file below GOROOT/src, with slashes
	of   string // name of the struct type
	text string // declaration of the field
}

// mismatch is the error for a rule whose function or struct is not in the source file as the rule expects it.
type mismatch struct {
	rule rename
	why  string
}

// Error implements error.
func (m *mismatch) Error() string {
	return fmt.Sprintf("%s: %s: %s", m.rule.file, m.rule.name(), m.why)
}

// replacement is new text for the bytes from start to end of a file.
type replacement struct {
	start, end int
	text       string
}

// apply returns the file src with rules and fields applied. All rules must be for this file; fields for
// other files are ignored. A call between two renamed functions is renamed too. For a method, only its
// declaration is renamed.
func apply(name string, rules []rename, fields []field, src []byte) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	names := make(map[string]string, len(rules))
	for _, r := range rules {
		if !r.method() {
			names[r.name()] = r.to
		}
	}
	edits, err := addFields(file, name, fields, offset)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		fn, err := find(file, r)
		if err != nil {
			return nil, err
		}
		if got := signature(src[offset(fn.Pos()):offset(fn.Body.Pos())]); got != r.signature {
			return nil, &mismatch{r, "declared as " + got}
		}
		if r.method() {
			edits = append(edits, replacement{offset(fn.Name.Pos()), offset(fn.Name.End()), r.to})
			continue
		}
		edits = append(edits, dropLinkname(fn, r.name(), offset)...)
		selected := map[*ast.Ident]bool{} // identifiers after a dot (x.F), which do not refer to a function of this package
		ast.Inspect(fn, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				selected[n.Sel] = true
			case *ast.Ident:
				if names[n.Name] != "" && !selected[n] {
					edits = append(edits, replacement{offset(n.Pos()), offset(n.End()), names[n.Name]})
				}
			}
			return true
		})
	}
	return replaceAll(src, edits), nil
}

// find returns the declaration of the function that r renames, which must be the only one.
func find(file *ast.File, r rename) (*ast.FuncDecl, error) {
	var found *ast.FuncDecl
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != r.name() || (fn.Recv != nil) != r.method() || r.method() && !r.isOf(fn.Recv) {
			continue
		}
		if found != nil {
			return nil, &mismatch{r, "declared twice"}
		}
		found = fn
	}
	if found == nil {
		return nil, &mismatch{r, "not declared"}
	}
	if found.Body == nil {
		return nil, &mismatch{r, "declared without a body"}
	}
	return found, nil
}

// isOf reports whether recv is the receiver of the method that r renames.
func (r rename) isOf(recv *ast.FieldList) bool {
	want, _, _ := strings.Cut(strings.TrimPrefix(r.signature, "func ("), ")")
	return strings.HasSuffix(want, " "+types.ExprString(recv.List[0].Type))
}

// addFields returns the edits that add fields to structs of a file.
func addFields(file *ast.File, name string, fields []field, offset func(token.Pos) int) ([]replacement, error) {
	var edits []replacement
	for _, f := range fields {
		if f.file != name {
			continue
		}
		s := findStruct(file, f.of)
		if s == nil {
			return nil, fmt.Errorf("%s: %s: no struct of that name is declared", name, f.of)
		}
		at := offset(s.Fields.Opening) + 1
		edits = append(edits, replacement{at, at, "\n\t" + f.text + "\n"})
	}
	return edits, nil
}

// findStruct returns the struct type with this name, or nil.
func findStruct(file *ast.File, name string) *ast.StructType {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			if t, ok := spec.(*ast.TypeSpec); ok && t.Name.Name == name {
				s, _ := t.Type.(*ast.StructType)
				return s
			}
		}
	}
	return nil
}

// signature joins the text of a declaration before its body into one line.
func signature(decl []byte) string { return strings.Join(strings.Fields(string(decl)), " ") }

// dropLinkname returns the edits that remove the go:linkname directives of fn. The replacement of fn declares them
// instead.
func dropLinkname(fn *ast.FuncDecl, name string, offset func(token.Pos) int) []replacement {
	if fn.Doc == nil {
		return nil
	}
	var edits []replacement
	for _, c := range fn.Doc.List {
		f := strings.Fields(c.Text)
		if len(f) >= 2 && f[0] == "//go:linkname" && f[1] == name {
			edits = append(edits, replacement{offset(c.Pos()), offset(c.End()), "//"})
		}
	}
	return edits
}

// replaceAll applies edits to src. Edits do not overlap.
func replaceAll(src []byte, edits []replacement) []byte {
	sort.Slice(edits, func(i, j int) bool { return edits[i].start < edits[j].start })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(src[at:e.start])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(src[at:])
	return out.Bytes()
}
