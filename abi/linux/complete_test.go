package linux

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Tests that nothing is missing: TestConstants compares only the constants that this package has.

// definedInC returns the names of the macros that a header of C defines and that begin with a prefix.
func definedInC(t *testing.T, header, prefix string) (names []string) {
	t.Helper()
	cc := exec.Command("gcc", "-dM", "-E", "-include", header, "-x", "c", "/dev/null")
	out, err := cc.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 && strings.HasPrefix(f[1], prefix) {
			names = append(names, f[1])
		}
	}
	return names
}

// declared returns the names of the constants of a file.
func declared(t *testing.T, name string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			names = append(names, v.Names[0].Name)
		}
		return true
	})
	return names
}

// Every system call and every error number of Debian's headers has a constant.
func TestComplete(t *testing.T) {
	for _, c := range []struct {
		file, header, prefix, ours string
		atLeast                    int
	}{
		{"number.go", "asm/unistd_64.h", "__NR_", "SYS_", 300},
		{"errno.go", "errno.h", "E", "E", 130},
	} {
		have, inC := declared(t, c.file), definedInC(t, c.header, c.prefix)
		if len(inC) < c.atLeast {
			t.Errorf("%s defines only %d names", c.header, len(inC))
		}
		for _, name := range inC {
			name = c.ours + strings.ToUpper(strings.TrimPrefix(name, c.prefix))
			if !slices.Contains(have, name) {
				t.Errorf("%s is missing in %s", name, c.file)
			}
		}
	}
}

// Each message begins at a multiple of 8 bytes, as the macros CMSG_ALIGN, CMSG_SPACE and CMSG_NXTHDR do it.
func TestControlMessages(t *testing.T) {
	sizes := []int{0, 1, 4, 7, 8, 12, 20, 24}
	room, body := 0, new(strings.Builder)
	for _, n := range sizes {
		room += AlignCmsg(SizeofCmsghdr + n)
	}
	fmt.Fprintf(body, "_Alignas(8) unsigned char room[%d]; memset(room, 0, sizeof room);\n", room)
	body.WriteString("struct msghdr m = { .msg_control = room, .msg_controllen = sizeof room }; struct cmsghdr *c = CMSG_FIRSTHDR(&m);\n")
	for i, n := range sizes {
		fmt.Fprintf(body, "c->cmsg_len = CMSG_LEN(%d); c->cmsg_level = %d; c->cmsg_type = %d; memset(CMSG_DATA(c), %d, %d); c = CMSG_NXTHDR(&m, c);\n",
			n, i+1, i+100, i+200, n)
	}
	body.WriteString(`if (c) printf("one more "); for (size_t i = 0; i < sizeof room; i++) printf("%02x", room[i]);` + "\n")

	var ours []byte
	for i, n := range sizes {
		ours = Cmsghdr{Len: uint64(SizeofCmsghdr + n), Level: int32(i + 1), Type: int32(i + 100)}.Append(ours)
		ours = append(ours, bytes.Repeat([]byte{byte(i + 200)}, n)...)
		ours = append(ours, make([]byte, AlignCmsg(n)-n)...)
	}
	if want := compileAndRun(t, []string{"sys/socket.h"}, body.String()); fmt.Sprintf("%x", ours) != want {
		t.Errorf("encoded %x\nin C    %s", ours, want)
	}
}

// An encoder writes the bytes of its structure and no more. An encoder or a decoder of too few bytes panics: the caller
// checks the length.
func TestBounds(t *testing.T) {
	panics := func(f func()) (panicked bool) {
		defer func() { panicked = recover() != nil }()
		f()
		return
	}
	for _, s := range structures {
		t.Run(s.c, func(t *testing.T) {
			v := s.new()
			if s.put != nil {
				b := bytes.Repeat([]byte{0xee}, s.size+1)
				if s.put(v, b); b[s.size] != 0xee {
					t.Error("the encoder writes after the structure")
				}
				if s.c != "struct cmsghdr" && !panics(func() { s.put(v, b[:s.size/2]) }) {
					t.Error("the encoder takes half of the memory")
				}
			}
			if s.parse != nil && !panics(func() { s.parse(make([]byte, s.size/2)) }) {
				t.Error("the decoder takes half of the structure")
			}
		})
	}
}
