package unikernel

import (
	"path/filepath"

	"loam/exec/library"
	"loam/unikernel/needed"
)

// A target that is an ELF file is an unmodified Linux program. It runs in ring 3 of a virtual machine whose kernel is a
// small Go program (package unikernel/rt/ring3). The guest gets the program, its interpreter and its libraries, and the
// files that the libraries themselves read (unikernel/needed). It gets no other file of the host.

// ring3Main is the source of that Go program.
const ring3Main = `// Command linux runs a Linux program in ring 3.
package main

import "` + guestModule + ring3Package + `"

func main() { ring3.Main() }
`

// takeLinuxProgram replaces a target that is an ELF file or a script by the Go program that runs Linux programs in ring 3.
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
	if !needed.IsELF(path) && !needed.IsScript(path) {
		return o.hasNoUser()
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if o.Target.Platform != Machine {
		return errNeedsMachine(path)
	}
	if err := o.addProgram(path); err != nil {
		return err
	}
	o.Args, o.linux = append([]string{path}, o.Args...), true
	return o.Target.runsLinux()
}

// addProgram adds the volumes of a Linux program of the host: its file, its interpreters and its libraries.
func (o *Options) addProgram(path string) error {
	files, err := needed.Started(path)
	if err != nil {
		return errorf("", "%v", err)
	}
	for _, f := range files {
		if err := o.addFile(f); err != nil {
			return err
		}
		if !needed.IsELF(f) {
			continue
		}
		needs, err := library.Host{}.Find(f)
		if err != nil {
			return errorf("", "%v", err)
		}
		for _, l := range filesOf(needs) {
			if err := o.addFile(l); err != nil {
				return err
			}
		}
		for _, d := range needed.Data(f, needs) {
			if !covers(o.Volumes, d.Guest) {
				o.Volumes = append(o.Volumes, Volume{Host: d.Host, Guest: d.Guest, Writable: d.Changeable, deferred: d.Deferred})
			}
		}
	}
	return nil
}

// addFile adds a file of the host, under the same path, unless the guest has one there.
func (o *Options) addFile(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return errorf("install it anew", "%s: %v", path, err)
	}
	if !covers(o.Volumes, path) {
		o.Volumes = append(o.Volumes, Volume{Host: real, Guest: path, Writable: true})
	}
	return nil
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
