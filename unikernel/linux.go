package unikernel

import (
	"io"
	"os"
	"path/filepath"

	"loam/exec/library"
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
		return errorf("use --platform vm", "%s is a Linux program, which needs Loam's kernel under it", path)
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
