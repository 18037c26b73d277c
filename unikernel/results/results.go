// Package results transfers files that a test binary writes on behalf of go test: coverage and profiles. The binary writes them to
// its own file system and sends them when it ends (unikernel/rt/results.go). The loam command then writes them where go test
// expects them.
package results

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// resultFlags are the flags of a test binary (package testing) whose value is a file name relative to
// -test.outputdir.
var resultFlags = []string{"blockprofile", "coverprofile", "cpuprofile", "memprofile", "mutexprofile", "trace"}

// List lists the files that a program will send when it ends, and the folders that must exist in the guest for them.
type List struct{ Files, Folders []string }

// Find returns the files that a test binary with these arguments will write. folder is its working
// folder.
func Find(args []string, folder string) (l List) {
	dir := folder
	var below []string
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		name, test := strings.CutPrefix(name, "test.")
		switch {
		case !test || value == "":
		case name == "outputdir":
			dir = under(folder, value)
		case name == "gocoverdir":
			l.Folders = append(l.Folders, under(folder, value))
		case slices.Contains(resultFlags, name):
			below = append(below, value)
		}
	}
	for _, name := range below {
		l.Files = append(l.Files, under(dir, name))
	}
	return l
}

// under returns the absolute path of name, relative to dir.
func under(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// most is the most that a program may send, in bytes. Sparse files make it necessary: a small
// archive can declare files of any size.
const most = 4 << 30

// errTooMuch is returned if a program sends more than most.
var errTooMuch = errors.New("the program leaves files of more than 4 GiB")

// Receive reads an archive, and writes the files in it whose names are in wanted.
func Receive(from io.Reader, wanted []string) error {
	var failed error
	var size int64
	archive := tar.NewReader(from)
	for {
		h, err := archive.Next()
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) { // the archive is incomplete if the program was killed
			return failed
		}
		if err != nil {
			return err
		}
		if !slices.Contains(wanted, h.Name) {
			continue
		}
		if h.Size > most-size {
			return errors.Join(failed, errTooMuch)
		}
		size += h.Size
		failed = errors.Join(failed, write(h.Name, archive))
	}
}

// write writes a file without holding it in memory.
func write(name string, from io.Reader) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
