package unikernel

import "testing"

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
