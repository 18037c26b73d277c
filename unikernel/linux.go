package unikernel

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"loam/fs/tarfs"
)

// A target that is an ELF file is an unmodified Linux program. It runs in ring 3 of a virtual machine whose kernel is a
// small Go program (package unikernel/rt/ring3). The guest gets the program, its interpreter and its libraries, and no
// other file of the host.

// ring3Main is the source of that Go program.
const ring3Main = `// Command linux runs a Linux program in ring 3.
package main

import "` + guestModule + ring3Package + `"

func main() { ring3.Main() }
`

// takeLinuxProgram replaces a target that is an ELF file by the Go program that runs ELF files in ring 3.
func (o *Options) takeLinuxProgram() error {
	if len(o.Target.Args) != 1 {
		return o.hasNoUser()
	}
	path := o.Target.Args[0]
	if o.Root != "" {
		if o.Target.Platform != Machine {
			return errNeedsMachine(path)
		}
		o.Args, o.linux = append([]string{path}, o.Args...), true
		return o.Target.runsLinux()
	}
	if !filepath.IsAbs(path) && o.Target.Dir != "" {
		path = filepath.Join(o.Target.Dir, path)
	}
	if !isELF(path) {
		return o.hasNoUser()
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if o.Target.Platform != Machine {
		return errNeedsMachine(path)
	}
	needs, err := neededBy(path)
	if err != nil {
		return errorf("", "%v", err)
	}
	for _, f := range append([]string{path}, needs...) {
		real, err := filepath.EvalSymlinks(f)
		if err != nil {
			return errorf("install it anew", "%s: %v", f, err)
		}
		o.Volumes = append(o.Volumes, Volume{Host: real, Guest: f, Writable: true})
	}
	o.Args, o.linux = append([]string{path}, o.Args...), true
	return o.Target.runsLinux()
}

// hasNoUser rejects a user for a program in Go, whose user IDs are fixed.
func (o *Options) hasNoUser() error {
	if o.User == "" {
		return nil
	}
	return errorf("run the program without -u", "-u %s is for Linux programs", o.User)
}

// errNeedsMachine returns the error for a Linux program on a platform without ring 3.
func errNeedsMachine(path string) error {
	return errorf("use --platform vm", "%s is a Linux program, which needs Loam's kernel under it", path)
}

// errTooLarge is returned by bounded.
var errTooLarge = errors.New("it is larger than the machine's memory")

// bounded is a writer that accepts a limited number of further bytes (the field left), and then returns errTooLarge.
type bounded struct {
	to   io.Writer
	left uint64
}

func (b *bounded) Write(p []byte) (int, error) {
	if uint64(len(p)) > b.left {
		return 0, errTooLarge
	}
	b.left -= uint64(len(p))
	return b.to.Write(p)
}

// openRoot returns the archive of a root folder, whose size in bytes is at most the
// parameter most. The caller closes it.
func openRoot(name string, most uint64) (*os.File, error) {
	f, err := packRoot(name, most)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, errorf("give the machine more memory (-m)", "--root %s: %v", name, errTooLarge)
	case err != nil:
		return nil, errorf("name a folder, or a file that tar has made (.tar or .tar.gz)", "--root: %v", err)
	}
	return f, nil
}

func packRoot(name string, most uint64) (*os.File, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return filled(func(w io.Writer) error {
			_, err := tarfs.Pack(w, name)
			return err
		}, most)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if z, err := gzip.NewReader(f); err == nil {
		defer f.Close()
		f, err = filled(func(w io.Writer) error {
			_, err := io.Copy(w, z)
			return err
		}, most)
		if err != nil {
			return nil, err
		}
	} else if st.Size() > int64(most) {
		f.Close()
		return nil, errTooLarge
	}
	if _, err := tar.NewReader(io.NewSectionReader(f, 0, st.Size()+int64(most))).Next(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is no archive: %w", name, err)
	}
	return f, nil
}

// filled returns a memory file with the output of the function fill. It fails with
// errTooLarge if the output has more bytes than the parameter most.
func filled(fill func(io.Writer) error, most uint64) (*os.File, error) {
	f, err := memoryFile("root")
	if err != nil {
		return nil, err
	}
	if err := fill(&bounded{f, most}); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// isELF reports whether a path names an ELF file.
func isELF(path string) bool {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && string(magic[:]) == "\x7fELF"
}

// runsLinux changes the target to the Go program that runs Linux programs, whose source it writes to the cache.
func (t *Target) runsLinux() error {
	c, err := openCache()
	if err != nil {
		return err
	}
	const module = "module linux\n\ngo 1.26\n"
	dir := c.path("linux", digest(ring3Main, module))
	if err := writeFile(filepath.Join(dir, "go.mod"), []byte(module)); err != nil {
		return err
	}
	t.Args, t.Dir = []string{dir}, ""
	return writeFile(filepath.Join(dir, "main.go"), []byte(ring3Main))
}
