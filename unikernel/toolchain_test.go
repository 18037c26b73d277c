package unikernel

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFirstComplaint(t *testing.T) {
	for output, want := range map[string]string{
		"":                                       "exit status 1",
		"go: downloading example.org/m v1.0.0\n": "exit status 1",
		"# example.org/m\n./main.go:3:1: syntax error\n":                                                      "./main.go:3:1: syntax error",
		"go: example.org/m@v9: not found\n":                                                                   "example.org/m@v9: not found",
		"go: example.org/m/cmd imports\n\texample.org/m/a imports\n\texample.org/b: reading x: 403\n\tmore\n": "example.org/b: reading x: 403",
		"go: example.org/m@v1 requires\n\texample.org/b@v2: reading x: 404\n":                                 "example.org/b@v2: reading x: 404",
		"go: example.org/m/cmd imports\n":                                                                     "example.org/m/cmd imports",
		"go: a.org/m@v1.0.0 requires\n\tb.org/m@v0.5.3: parsing go.mod:\n\tmodule declares its path as: c.org/m\n\t        but was required as: b.org/m\n": "b.org/m@v0.5.3: parsing go.mod: module declares its path as: c.org/m but was required as: b.org/m",
	} {
		if got := firstComplaint(output, "exit status 1"); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

// Positions in files are rewritten relative to the user's folder. Other text is unchanged.
func TestFromHere(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, output, want string }{
		{here, "./main.go:3:8: x", "./main.go:3:8: x"},
		{filepath.Join(here, "sub"), "# m\n./main.go:3:8: x\n\tlower/a.go:1: y", "# m\nsub/main.go:3:8: x\n\tlower/a.go:1: y"},
		{filepath.Join(here, "sub"), "lower/a.go:1: y\n/full/b.go:1: z", "sub/lower/a.go:1: y\n/full/b.go:1: z"},
		{"/x", "./main.go:3:8: x", "/x/main.go:3:8: x"},
		{"/x", "go: a.go is empty", "go: a.go is empty"},
	} {
		if got := fromHere(c.output, c.dir); got != c.want {
			t.Errorf("%q of %s: %q, want %q", c.output, c.dir, got, c.want)
		}
	}
}
