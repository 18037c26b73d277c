package unikernel

import (
	"io"
	"os"
	"path/filepath"

	"loam/exec/library"
)

// A target that is an ELF file is an unmodified Linux program. It runs in ring 3 of a virtual machine whose kernel is a
// small Go program (package unikernel/rt/ring3). The guest gets the program, its interpreter and its libraries, and the
// files that the libraries themselves read (hostfiles.go). It gets no other file of the host.

// ring3Main is the source of that Go program.
const ring3Main = `// Command linux runs a Linux program in ring 3.
package main

import "` + guestModule + ring3Package + `"

func main() { ring3.Main() }
`

// takeLinuxProgram replaces a target that is an ELF file by the Go program that runs ELF files in ring 3.
func (o *Options) takeLinuxProgram() error {
	if o.Root != "" {
		if err := o.takeRoot(); err != nil {
			return err
		}
		o.linux = true
		return o.Target.runsLinux()
	}
	if len(o.Target.Args) != 1 {
		return o.hasNoUser()
	}
	path := o.Target.Args[0]
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
	needs, err := library.Host{}.Find(path)
	if err != nil {
		return errorf("", "%v", err)
	}
	for _, f := range append([]string{path}, filesOf(needs)...) {
		real, err := filepath.EvalSymlinks(f)
		if err != nil {
			return errorf("install it anew", "%s: %v", f, err)
		}
		o.Volumes = append(o.Volumes, Volume{Host: real, Guest: f, Writable: true})
	}
	for _, v := range hostFiles(path, needs) {
		if !covers(o.Volumes, v.Guest) {
			o.Volumes = append(o.Volumes, v)
		}
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
