// Package library finds the files that an ELF program of the host needs on another machine: its dynamic loader and its
// libraries. It follows the rules of ld.so(8) and accesses no other files.
//
// A library is looked up, for each DT_NEEDED entry in breadth-first order, in
//
//  1. DT_RPATH of the object that needs it and of the objects through which it was loaded, each
//     unless it has a DT_RUNPATH;
//  2. DT_RUNPATH of the object that needs it;
//  3. /etc/ld.so.cache, or the folders of /etc/ld.so.conf if there is no cache;
//  4. the default folders.
//
// A name with a slash is a path. $ORIGIN, $LIB and $PLATFORM are expanded. Files for another architecture are skipped.
// LD_LIBRARY_PATH, LD_PRELOAD and /etc/ld.so.preload are not used, so that the result does not depend on the user.
// Folders named glibc-hwcaps are not searched, because the guest may have a different processor from the host.
// [Host.Opened] finds libraries that a program may open at run time (dlopen).
package library

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Rule is the rule of ld.so by which a library was found.
type Rule uint8

// Rules, in the order in which they are tried.
const (
	ByPath Rule = iota
	ByRPath
	ByRunPath
	ByCache
	ByConf
	ByDefault
)

// Library is one library of a program.
type Library struct {
	Name string // as in the entry DT_NEEDED of the program
	Path string
	By   Rule
}

// Needs lists the files that a program needs.
type Needs struct {
	Interp    string // path of the dynamic loader; empty for a static program
	Libraries []Library
}

// NeedsCache reports whether the dynamic loader can find some library only through /etc/ld.so.cache.
func (n Needs) NeedsCache() bool {
	return slices.ContainsFunc(n.Libraries, func(l Library) bool {
		return (l.By == ByCache || l.By == ByConf) && !slices.Contains(defaultFolders, path.Dir(l.Path))
	})
}

// defaultFolders are the folders that ld.so searches even without a cache, on Debian and other distributions.
var defaultFolders = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib", "/lib64", "/usr/lib64"}

// Host is a tree of files that contains programs and their libraries.
type Host struct {
	Root string // folder of the tree; empty: the host's root. Below another root, only relative symbolic links are followed
}

// object is a program or library that was found.
type object struct {
	path           string // path below the root folder that was searched
	origin         string // folder of the file, for $ORIGIN
	loader         *object
	soname, interp string
	needed         []string
	rpath, runpath []string
}

// search is one lookup of a program's libraries.
type search struct {
	Host
	cache  map[string]string // paths of libraries by name, from ld.so.cache; nil: there is no cache
	conf   []string
	loaded []*object
	known  map[string]bool // names and DT_SONAMEs of the libraries that are loaded
}

// Find returns the files that the program at a path needs. The text of an error is one line: the problem, and how to
// solve it.
func (h Host) Find(program string) (Needs, error) {
	main, err := h.open(program, nil)
	if err != nil {
		return Needs{}, h.explain(program, err)
	}
	if real, err := filepath.EvalSymlinks(h.Root + program); err == nil { // the kernel passes the real path to ld.so
		main.origin = path.Dir(strings.TrimPrefix(real, h.Root))
	}
	n := Needs{Interp: main.interp}
	if n.Interp == "" && len(main.needed) == 0 {
		return n, nil
	}
	s := &search{Host: h, known: map[string]bool{}}
	if err := s.system(); err != nil {
		return Needs{}, err
	}
	if n.Interp != "" {
		loader, err := h.open(n.Interp, nil)
		if err != nil {
			return Needs{}, fmt.Errorf("%s: its loader %s cannot be used (%v): install the C library that it was built for", program, n.Interp, reason(err))
		}
		s.known[loader.soname], s.known[path.Base(n.Interp)] = true, true
	}
	n.Libraries, err = s.all(main)
	return n, err
}

// all finds the libraries of main and of all libraries that it finds, breadth first.
func (s *search) all(main *object) (libraries []Library, err error) {
	s.loaded = []*object{main}
	for i := 0; i < len(s.loaded); i++ {
		for _, name := range s.loaded[i].needed {
			if s.known[name] {
				continue
			}
			l, o := s.find(name, s.loaded[i])
			if o == nil {
				return nil, fmt.Errorf("%s: library %s, which %s needs, is missing: install the package that contains it",
					main.path, name, s.loaded[i].path)
			}
			s.known[name] = true
			if o.soname != "" {
				s.known[o.soname] = true
			}
			libraries, s.loaded = append(libraries, l), append(s.loaded, o)
		}
	}
	return libraries, nil
}

// find finds the library called name. The parameter by is the object that needs it.
func (s *search) find(name string, by *object) (Library, *object) {
	if strings.Contains(name, "/") {
		return s.try(name, by.expand(name), ByPath, by)
	}
	for _, place := range s.places(name, by) {
		if l, o := s.try(name, place.path, place.by, by); o != nil {
			return l, o
		}
	}
	return Library{}, nil
}

// place is a path at which a library may exist, and the rule that yields this path.
type place struct {
	path string
	by   Rule
}

func (s *search) places(name string, by *object) (all []place) {
	add := func(rule Rule, folders ...string) {
		for _, f := range folders {
			all = append(all, place{path.Join(f, name), rule})
		}
	}
	if len(by.runpath) == 0 {
		for o := by; o != nil; o = o.loader {
			if len(o.runpath) == 0 {
				add(ByRPath, o.rpath...)
			}
		}
	}
	add(ByRunPath, by.runpath...)
	if file, ok := s.cache[name]; ok {
		all = append(all, place{file, ByCache})
	}
	add(ByConf, s.conf...)
	add(ByDefault, defaultFolders...)
	return all
}

func (s *search) try(name, file string, rule Rule, by *object) (Library, *object) {
	o, err := s.open(file, by)
	if err != nil {
		return Library{}, nil
	}
	return Library{Name: name, Path: file, By: rule}, o
}

// expand replaces $ORIGIN, $LIB and $PLATFORM in a path.
func (o *object) expand(p string) string {
	for token, value := range map[string]string{"ORIGIN": o.origin, "LIB": "lib/x86_64-linux-gnu", "PLATFORM": "x86_64"} {
		p = strings.ReplaceAll(strings.ReplaceAll(p, "${"+token+"}", value), "$"+token, value)
	}
	return p
}

var (
	errNotELF    = errors.New("it is no ELF file")
	errBits      = errors.New("it is a 32-bit program")
	errProcessor = errors.New("it is for another processor")
	errDamaged   = errors.New("its headers are damaged")
)

// reason returns an error without its path, which the message already contains.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// explain returns the error message for a program that cannot be read.
func (h Host) explain(program string, err error) error {
	advice := "give a program that exists and can be read"
	switch {
	case errors.Is(err, errNotELF):
		advice = "give a Go package, or an ELF program of Linux"
	case errors.Is(err, errBits), errors.Is(err, errProcessor):
		advice = "Loam runs 64-bit programs for x86-64"
	case errors.Is(err, errDamaged):
		advice = "install it anew"
	}
	return fmt.Errorf("%s: %w: %s", program, reason(err), advice)
}

// open opens a program or library, and reads the names of its libraries and its search paths from its dynamic section.
func (h Host) open(file string, loader *object) (*object, error) {
	f, err := os.Open(h.Root + file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var ident [elf.EI_NIDENT]byte
	if _, err := f.ReadAt(ident[:], 0); err != nil || string(ident[:4]) != elf.ELFMAG {
		return nil, errNotELF
	}
	if elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return nil, errBits
	}
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, errDamaged
	}
	if e.Machine != elf.EM_X86_64 {
		return nil, fmt.Errorf("%w (%v)", errProcessor, e.Machine)
	}
	o := &object{path: file, origin: path.Dir(file), loader: loader}
	return o, o.read(e)
}
