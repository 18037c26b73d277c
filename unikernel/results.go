package unikernel

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Results are files that a test binary writes on behalf of go test: coverage and profiles. The binary
// writes them to its own file system and sends them when it ends (rt/results.go). The loam command then
// writes them where go test expects them.

// resultFlags are the flags of a test binary (package testing) whose value is a file name relative to
// -test.outputdir.
var resultFlags = []string{"blockprofile", "coverprofile", "cpuprofile", "memprofile", "mutexprofile", "trace"}

// results lists the files that a program will send when it ends, and the folders that must exist in the guest for them.
type results struct{ files, folders []string }

// findResults returns the files that a test binary with these arguments will write. folder is its working
// folder.
func findResults(args []string, folder string) (r results) {
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
			r.folders = append(r.folders, under(folder, value))
		case slices.Contains(resultFlags, name):
			below = append(below, value)
		}
	}
	for _, name := range below {
		r.files = append(r.files, under(dir, name))
	}
	return r
}

// under returns the absolute path of name, relative to dir.
func under(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// mostResults is the most that a program may send, in bytes. Sparse files make it necessary: a small
// archive can declare files of any size.
const mostResults = 4 << 30

// errResults is returned if a program sends more than mostResults.
var errResults = errors.New("the program leaves files of more than 4 GiB")

// receiveResults reads an archive, and writes the files in it whose names are in wanted.
func receiveResults(from io.Reader, wanted []string) error {
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
		if h.Size > mostResults-size {
			return errors.Join(failed, errResults)
		}
		size += h.Size
		failed = errors.Join(failed, writeResult(h.Name, archive))
	}
}

// writeResult writes a file without holding it in memory.
func writeResult(name string, from io.Reader) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// takeResults prepares the guest to send results. The function wait waits for the
// transfer after the guest has ended; it must be called.
func (n *network) takeResults(r results, platform Platform) (wait func() error, err error) {
	n.config.Results, n.config.ResultFolders = r.files, r.folders
	if len(r.files) == 0 {
		return func() error { return nil }, nil
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if platform == Machine {
		n.results = to
	} else {
		n.config.ResultsFD = n.give(to)
	}
	done := make(chan error, 1) // the goroutine that receives the results sends its error once, and takeResults's wait receives it
	go func() {
		err := receiveResults(from, r.files)
		io.Copy(io.Discard, from) // discards the rest, so that the program does not block on the pipe
		done <- err
	}()
	return func() error {
		n.handedOver()
		to.Close()
		defer from.Close()
		return <-done
	}, nil
}
