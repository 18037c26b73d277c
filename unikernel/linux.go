package unikernel

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"

	"loam/exec/library"
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

// takeLinuxProgram replaces a target that is an ELF file by the Go program that runs it.
func (o *Options) takeLinuxProgram() error {
	if len(o.Target.Args) != 1 {
		return nil
	}
	path := o.Target.Args[0]
	if o.Root != "" {
		if o.Target.Platform != Machine {
			return errNeedsMachine(path)
		}
		o.Args = append([]string{path}, o.Args...)
		return o.Target.runsLinux()
	}
	if !filepath.IsAbs(path) && o.Target.Dir != "" {
		path = filepath.Join(o.Target.Dir, path)
	}
	if !isELF(path) {
		return nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if o.Target.Platform != Machine {
		return errNeedsMachine(path)
	}
	needs, err := library.Host{}.Find(path)
	if err != nil {
		return errorf("", "%v", err)
	}
	files := []string{path}
	if needs.Interp != "" {
		files = append(files, needs.Interp)
	}
	for _, l := range needs.Libraries {
		files = append(files, l.Path)
	}
	for _, f := range files {
		real, err := filepath.EvalSymlinks(f)
		if err != nil {
			return errorf("install it anew", "%s: %v", f, err)
		}
		o.Volumes = append(o.Volumes, Volume{Host: real, Guest: f, Writable: true})
	}
	o.Args = append([]string{path}, o.Args...)
	return o.Target.runsLinux()
}

// errNeedsMachine returns the error for a Linux program on a platform without ring 3.
func errNeedsMachine(path string) error {
	return errorf("use --platform vm", "%s is a Linux program, which needs Loam's kernel under it", path)
}

// openRoot returns the archive of a root folder. The caller closes it.
func openRoot(name string) (*os.File, error) {
	const next = "name a folder, or a file that tar has made (.tar or .tar.gz)"
	st, err := os.Stat(name)
	if err != nil {
		return nil, errorf(next, "--root: %v", err)
	}
	if st.IsDir() {
		f, err := memoryFile("root")
		if err == nil {
			_, err = tarfs.Pack(f, name)
		}
		if err != nil {
			return nil, errorf(next, "--root %s: %v", name, err)
		}
		return f, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, errorf(next, "--root: %v", err)
	}
	var magic [2]byte
	if _, err := f.ReadAt(magic[:], 0); err == nil && string(magic[:]) == "\x1f\x8b" {
		defer f.Close()
		f, err = decompressed(f)
		if err != nil {
			return nil, errorf(next, "--root %s: %v", name, err)
		}
	}
	if _, err := tar.NewReader(io.NewSectionReader(f, 0, 1<<62)).Next(); err != nil {
		f.Close()
		return nil, errorf(next, "--root %s is no archive: %v", name, err)
	}
	return f, nil
}

// decompressed returns the content of a gzip file as a file in memory.
func decompressed(f *os.File) (*os.File, error) {
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	to, err := memoryFile("root")
	if err == nil {
		_, err = io.Copy(to, z)
	}
	return to, err
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

// runsLinux makes the target the Go program that runs Linux programs, in the cache.
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
