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

// Results are files that a test binary writes because go test was asked for them:
// coverage and profiles. It writes them into its own files, sends them when it ends
// (rt/results.go), and we put them where go test looks.

// resultFlags are the flags of a test binary (package testing) that name a file below
// -test.outputdir.
var resultFlags = []string{"blockprofile", "coverprofile", "cpuprofile", "memprofile", "mutexprofile", "trace"}

// results are files that a program is to leave to us, and folders that it finds.
type results struct{ files, folders []string }

// findResults lists what a test binary with these arguments will write, which begins
// in folder.
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

// under is a path as it is meant by who is in dir.
func under(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// mostResults is how much a program may leave to us, in bytes: an archive of a few bytes
// can say that it has files of any size.
const mostResults = 4 << 30

var errResults = errors.New("the program leaves files of more than 4 GiB")

// receiveResults writes the files of an archive, of those that are wanted.
func receiveResults(from io.Reader, wanted []string) error {
	var failed error
	var size int64
	archive := tar.NewReader(from)
	for {
		h, err := archive.Next()
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) { // it was killed
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

// writeResult writes a file, without holding it in memory.
func writeResult(name string, from io.Reader) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// takeResults has the guest send us results. wait waits for what is under way once
// the guest has ended, and must be called.
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
	done := make(chan error, 1) // the goroutine sends once
	go func() {
		err := receiveResults(from, r.files)
		io.Copy(io.Discard, from) // the program is not held up
		done <- err
	}()
	return func() error {
		n.handedOver()
		to.Close()
		defer from.Close()
		return <-done
	}, nil
}
