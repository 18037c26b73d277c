package house

import (
	"bytes"
	"fmt"
	"testing"
)

// A package must be small enough to be read as a whole. A larger package is split into a small package and packages
// that import it (decision 62). Tests and generated files are not counted.

const (
	maxPackageLines = 5500
	maxPackageFiles = 55
)

// packageSize is the size of a package.
type packageSize struct{ Files, Lines int }

// tooLarge are the packages above the limits, with their size. The numbers may only be lowered.
var tooLarge = map[string]packageSize{
	"stack":   {69, 11333},
	"fs/ext4": {24, 6614}, // the limit was raised for direct I/O and growth; the file check.go (536 lines) can become a package
}

func TestPackageSizes(t *testing.T) {
	sizes := map[string]packageSize{}
	for _, f := range goFiles(t) {
		if f.IsTest() || f.isGenerated() {
			continue
		}
		s := sizes[f.Dir()]
		sizes[f.Dir()] = packageSize{s.Files + 1, s.Lines + bytes.Count(f.Text, []byte("\n"))}
	}
	report(t, oversizePackages(sizes, tooLarge))
}

// oversizePackages complains about packages above the limits, and about exceptions that are no longer needed.
func oversizePackages(sizes, exceptions map[string]packageSize) (complaints []string) {
	for dir, s := range sizes {
		most, ok := exceptions[dir]
		if !ok {
			most = packageSize{maxPackageFiles, maxPackageLines}
		}
		if s.Files > most.Files || s.Lines > most.Lines {
			complaints = append(complaints, fmt.Sprintf("package %s has %d files and %d lines, more than %d and %d: move a family into a package of its own",
				dir, s.Files, s.Lines, most.Files, most.Lines))
		}
		if ok && s.Files <= maxPackageFiles && s.Lines <= maxPackageLines {
			complaints = append(complaints, fmt.Sprintf("package %s is within the limits: remove it from tooLarge", dir))
		}
	}
	return complaints
}

func TestOversizePackagesAreFound(t *testing.T) {
	exceptions := map[string]packageSize{"large": {90, 9000}, "was": {90, 9000}}
	for _, test := range []struct {
		dir  string
		size packageSize
		want int
	}{
		{"p", packageSize{55, 5500}, 0}, {"p", packageSize{56, 10}, 1}, {"p", packageSize{1, 5501}, 1},
		{"large", packageSize{90, 9000}, 0}, {"large", packageSize{91, 9000}, 1}, {"was", packageSize{55, 5500}, 1},
	} {
		if got := oversizePackages(map[string]packageSize{test.dir: test.size}, exceptions); len(got) != test.want {
			t.Errorf("%s, %+v: %v", test.dir, test.size, got)
		}
	}
}
