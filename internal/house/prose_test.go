package house

import (
	"fmt"
	"go/ast"
	"go/build"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Documents become wrong when code changes. Therefore everything in `backquotes` that looks like a path
// or a Go name must exist, and every relative link must have a target. Decisions are exempt, because
// they describe a moment in time.
//
//	`stack/tcp/doc.go`, `link/`, `link/*`   a path from the root of the tree
//	`wire.ParseIPv4`, `stack/tcp.Conn`      a name that a package declares
//	`link.Frame.Free`                       a method or a field
//
// Words in capitals are placeholders (`stack/NAME/doc.go`). Words that begin with a slash or a dash
// refer to the machine, not to the tree.

func TestDocumentsAreTrue(t *testing.T) {
	tree := declarations(t)
	files(t, func(p string) {
		if strings.HasSuffix(p, ".md") && !strings.HasPrefix(p, "docs/decisions/") {
			report(t, tree.falsehoods(p, string(read(t, p))))
		}
	})
}

// tree is the set of names that documents may refer to.
type tree struct {
	exists   func(path string) bool // path from the root; may be a pattern
	packages map[string]*declared   // packages of the tree, by path
}

// declared is the set of names that one package declares.
type declared struct {
	names    map[string]bool     // "Func", "Type", "Type.Method", "Type.field"
	embedded map[string][]string // type -> types of this package that it embeds
}

// has reports whether the package declares name. name may be a member of an embedded type.
func (d *declared) has(name string) bool {
	if d.names[name] {
		return true
	}
	typ, member, ok := strings.Cut(name, ".")
	return ok && slices.ContainsFunc(d.embedded[typ], func(e string) bool { return d.has(e + "." + member) })
}

func declarations(t *testing.T) *tree {
	dir := rootDir(t)
	tr := &tree{
		exists: func(p string) bool {
			found, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(p)))
			return len(found) > 0
		},
		packages: map[string]*declared{},
	}
	for _, f := range goFiles(t) {
		d := tr.packages[f.Dir()]
		if d == nil {
			d = &declared{map[string]bool{}, map[string][]string{}}
			tr.packages[f.Dir()] = d
		}
		for _, decl := range f.AST.Decls {
			d.add(decl)
		}
	}
	return tr
}

func (d *declared) add(decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		name := decl.Name.Name
		if decl.Recv != nil {
			name = receiver(decl.Recv.List[0].Type) + "." + name
		}
		d.names[name] = true
	case *ast.GenDecl:
		for _, s := range decl.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				d.names[s.Name.Name] = true
				d.addMembers(s)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					d.names[n.Name] = true
				}
			}
		}
	}
}

func (d *declared) addMembers(s *ast.TypeSpec) {
	var members *ast.FieldList
	switch typ := s.Type.(type) {
	case *ast.StructType:
		members = typ.Fields
	case *ast.InterfaceType:
		members = typ.Methods
	default:
		return
	}
	for _, f := range members.List {
		for _, n := range f.Names {
			d.names[s.Name.Name+"."+n.Name] = true
		}
		if len(f.Names) == 0 {
			d.embedded[s.Name.Name] = append(d.embedded[s.Name.Name], receiver(f.Type))
		}
	}
}

// receiver returns the name of a receiver's type, without star and type parameters.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```$")
	span     = regexp.MustCompile("`([^`\n]+)`")
	link     = regexp.MustCompile(`\]\(([^)\s#]+)[^)]*\)`)
	goName   = regexp.MustCompile(`^([a-z][a-z0-9_/]*)\.([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)(?:\(\))?$`)
	treePath = regexp.MustCompile(`^\.?[A-Za-z0-9_*][\w.*-]*(/[\w.*-]*)+$|^[\w-]+\.(go|md|s|sh|svg|txt)$`)
	fileName = regexp.MustCompile(`\.(go|md|s|sh|svg|txt)$`)
	blank    = regexp.MustCompile(`NAME|FAMILY`)
)

// falsehoods returns complaints about names and links in one document that do not exist.
func (tr *tree) falsehoods(document, text string) (complaints []string) {
	complain := func(what, why string) {
		complaints = append(complaints, fmt.Sprintf("%s: `%s`: %s", document, what, why))
	}
	text = fence.ReplaceAllString(text, "")
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], ":") && !tr.exists(path.Join(path.Dir(document), m[1])) {
			complain(m[1], "the link leads nowhere")
		}
	}
	for _, m := range span.FindAllStringSubmatch(text, -1) {
		word := m[1]
		name := goName.FindStringSubmatch(word)
		switch {
		case blank.MatchString(word) || tr.exists(word) || tr.exists(path.Join(path.Dir(document), word)):
		case name != nil && !fileName.MatchString(word):
			if why := tr.unknownName(name[1], name[2]); why != "" {
				complain(word, why)
			}
		case treePath.MatchString(word) && !isStandardDir(word):
			complain(word, "no such path")
		}
	}
	return complaints
}

// unknownName returns what is wrong with pkg.name, or "". pkg is a path from the root, or its last
// element.
func (tr *tree) unknownName(pkg, name string) string {
	known := false
	for _, p := range slices.Sorted(maps.Keys(tr.packages)) {
		if p == pkg || path.Base(p) == pkg {
			known = true
			if tr.packages[p].has(name) {
				return ""
			}
		}
	}
	switch {
	case known:
		return "the package declares no such name"
	case isStandardDir(pkg) || isStandardDir("net/"+pkg):
		return ""
	}
	return "no such package"
}

// isStandardDir reports whether p is a package of the standard library.
func isStandardDir(p string) bool {
	info, err := os.Stat(filepath.Join(build.Default.GOROOT, "src", filepath.FromSlash(p)))
	return err == nil && info.IsDir()
}

func TestFalsehoodsAreFound(t *testing.T) {
	tr := &tree{
		exists: func(p string) bool { return slices.Contains([]string{"stack/tcp/conn.go", "link", "docs/walk.md"}, p) },
		packages: map[string]*declared{"stack/tcp": {
			names:    map[string]bool{"Conn": true, "Conn.Poll": true, "base.Close": true},
			embedded: map[string][]string{"Conn": {"base"}},
		}},
	}
	for text, why := range map[string]string{
		"`stack/tcp/conn.go`, `link`, `tcp.Conn`, `stack/tcp.Conn.Poll`": "",
		"`net/netip`, `time.Now`, `netip.Addr`, `/dev/net/tun`, `-p`":    "",
		"`tcp.Conn.Close`": "",
		"`stack/NAME/doc.go` [walk](docs/walk.md) [far](https://go.dev)": "",
		"```\n`stack/udp/gone.go`\n```":                                  "",
		"`stack/udp/gone.go`":                                            "no such path",
		"`gone.go`":                                                      "no such path",
		"`tcp.Gone`":                                                     "the package declares no such name",
		"`tcp.Conn.Gone`":                                                "the package declares no such name",
		"`gone.Conn`":                                                    "no such package",
		"[walk](docs/gone.md)":                                           "the link leads nowhere",
	} {
		got := tr.falsehoods("README.md", text)
		if (why == "") != (len(got) == 0) || why != "" && !strings.HasSuffix(got[0], why) {
			t.Errorf("%s: got %q, want %q", text, got, why)
		}
	}
}
