package linux

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// headersLine is the beginning of a comment line that names C headers. These headers define the constants below the
// comment.
const headersLine = "headers: "

// absent has the constants that the headers of Debian 12 lack, with their values from arch/x86/entry/syscalls/syscall_64.tbl and
// include/uapi of Linux 6.12. The structures that these headers lack are in testdata/newer.h.
var absent = map[string]int64{"SYS_FCHMODAT2": 452, "SYS_MSEAL": 462, "PR_SET_MDWE": 65, "PR_GET_MDWE": 66, "SCM_PIDFD": 4, "SO_PASSPIDFD": 76, "SO_PEERPIDFD": 77, "F_DUPFD_QUERY": 1027, "F_CREATED_QUERY": 1028, "UDPLITE_SEND_CSCOV": 10, "UDPLITE_RECV_CSCOV": 11}

// renamed are the constants whose C names begin with an underscore.
var renamed = map[string]string{"WNOTHREAD": "__WNOTHREAD", "WALL": "__WALL", "WCLONE": "__WCLONE", "CAPABILITY_VERSION_3": "_LINUX_CAPABILITY_VERSION_3", "SS_AUTODISARM": "(int)SS_AUTODISARM"}

// TestConstants compiles each constant against the C headers named above it.
func TestConstants(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				if _, headers, ok := strings.Cut(g.Doc.Text(), headersLine); ok {
					t.Run(name, func(t *testing.T) { compareConstants(t, strings.Fields(headers), literals(t, g)) })
				}
			}
		}
	}
}

// literals returns the names and values of a block of constants. Every value must be a literal.
func literals(t *testing.T, g *ast.GenDecl) map[string]int64 {
	all := map[string]int64{}
	for _, s := range g.Specs {
		v := s.(*ast.ValueSpec)
		value, sign := v.Values[0], int64(1)
		if minus, ok := value.(*ast.UnaryExpr); ok && minus.Op == token.SUB {
			value, sign = minus.X, -1
		}
		lit, ok := value.(*ast.BasicLit)
		if !ok {
			t.Fatalf("%s is not a literal", v.Names[0])
		}
		n, _ := constant.Int64Val(constant.MakeFromLiteral(lit.Value, lit.Kind, 0))
		all[v.Names[0].Name] = sign * n
	}
	return all
}

func compareConstants(t *testing.T, headers []string, ours map[string]int64) {
	var body strings.Builder
	for name := range ours {
		if _, ok := absent[name]; ok {
			continue
		}
		c := name
		if number, ok := strings.CutPrefix(name, "SYS_"); ok {
			c = "SYS_" + strings.ToLower(number)
		} else if r, ok := renamed[name]; ok {
			c = r
		}
		fmt.Fprintf(&body, "printf(\"%s %%lld\\n\", (long long)(%s));\n", name, c)
	}
	seen := 0
	for line := range strings.Lines(compileAndRun(t, headers, body.String())) {
		var name string
		var value int64
		if _, err := fmt.Sscan(line, &name, &value); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		seen++
		if ours[name] != value {
			t.Errorf("%s is %#x, the headers say %#x", name, ours[name], value)
		}
	}
	if seen < len(ours)-len(absent) {
		t.Errorf("the program printed %d constants of %d", seen, len(ours))
	}
}

// compileAndRun compiles a main function with its body against headers, runs it, and returns
// what it prints.
func compileAndRun(t *testing.T, headers []string, body string) string {
	t.Helper()
	var src strings.Builder
	src.WriteString("#define _GNU_SOURCE\n#include <stdio.h>\n#include <string.h>\n")
	for _, h := range headers {
		fmt.Fprintf(&src, "#include <%s>\n", h)
	}
	fmt.Fprintf(&src, "int main(void) {\n%sreturn 0;\n}\n", body)
	program := filepath.Join(t.TempDir(), "headers")
	cc := exec.Command("gcc", "-w", "-I", ".", "-x", "c", "-o", program, "-")
	cc.Stdin = strings.NewReader(src.String())
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
