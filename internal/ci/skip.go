package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

//go:embed skips.txt
var skipsText []byte

// skip is one line of skips.txt: a permission for tests to be skipped.
type skip struct {
	when string // one of the conditions that the function conditions returns
	pkg  string // a pattern of path.Match
	test string // a pattern of path.Match; * does not match the slash of a subtest
	why  string
}

func (s skip) matches(pkg, test string) bool {
	p, _ := path.Match(s.pkg, pkg)
	t, _ := path.Match(s.test, test)
	return p && t
}

// The conditions under which a test may be skipped.
const (
	always = "always"
	race   = "race" // the tests run under the race detector
	user   = "user" // the tests do not run as root
)

// conditions returns which conditions hold for a test run with these arguments.
func conditions(args []string) map[string]bool {
	return map[string]bool{
		always: true,
		race:   slices.Contains(args, "-race"),
		user:   os.Getuid() != 0,
	}
}

// readSkips parses skips.txt.
func readSkips(r io.Reader) ([]skip, error) {
	var all []skip
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 4 {
			return nil, fmt.Errorf("skips.txt:%d: want a condition, a package, a test and a reason", n)
		}
		if _, known := conditions(nil)[f[0]]; !known {
			return nil, fmt.Errorf("skips.txt:%d: no condition %q", n, f[0])
		}
		all = append(all, skip{f[0], f[1], f[2], strings.Join(f[3:], " ")})
	}
	return all, lines.Err()
}
