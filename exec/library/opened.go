package library

import (
	"bytes"
	"debug/elf"
	"io"
	"os"
	"slices"
	"strings"
)

// Libraries that a program opens at run time (dlopen). Their names are texts in the program or its libraries: for example,
// libc.so.6 contains libgcc_s.so.1, which pthread_exit(3) needs, and gdb contains libthread_db.so.1. Names that a program
// composes, or reads from files of its own, are not found. The only such names that are found are those of
// /etc/nsswitch.conf.

// maxScanned is the maximum size in bytes of a file that is searched for names.
const maxScanned = 256 << 20

// Opened returns the libraries that the program at a path may open at run time, with the libraries that these need. A
// library that does not exist is no error.
func (h Host) Opened(program string) ([]Library, error) {
	main, err := h.open(program, nil)
	if err != nil {
		return nil, h.explain(program, err)
	}
	if main.interp == "" {
		return nil, nil
	}
	s := &search{Host: h, known: map[string]bool{}}
	if err := s.system(); err != nil {
		return nil, err
	}
	if loader, err := h.open(main.interp, nil); err == nil {
		s.known[loader.soname] = true
	}
	if _, err := s.all(main); err != nil {
		return nil, err
	}
	var libraries []Library
	for i := 0; i < len(s.loaded); i++ {
		o := s.loaded[i]
		for _, name := range append(h.names(o.path), s.services(o)...) {
			libraries = append(libraries, s.openable(name, o)...)
		}
	}
	return libraries, nil
}

// openable finds a library and the libraries that it needs. It returns nothing if one of them is missing, because dlopen
// would fail.
func (s *search) openable(name string, by *object) []Library {
	if s.known[name] {
		return nil
	}
	l, o := s.find(name, by)
	if o == nil || s.known[o.soname] {
		return nil
	}
	trial := &search{Host: s.Host, cache: s.cache, conf: s.conf, known: map[string]bool{name: true, o.soname: true}}
	for known := range s.known {
		trial.known[known] = true
	}
	more, err := trial.all(o)
	if err != nil {
		return nil
	}
	s.known = trial.known
	s.loaded = append(s.loaded, trial.loaded...)
	return append([]Library{l}, more...)
}

// names returns the texts in a file that are names of libraries with a version, such as libgcc_s.so.1.
func (h Host) names(file string) (names []string) {
	f, err := os.Open(h.Root + file)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxScanned))
	if err != nil {
		return nil
	}
	const mark = ".so."
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(mark))
		if i < 0 {
			return names
		}
		i += at
		at = i + len(mark)
		start := bytes.LastIndexByte(text[:i], 0) + 1
		end := bytes.IndexByte(text[i:], 0)
		if end < 0 || i+end-start > maxSoname {
			continue
		}
		if name := string(text[start : i+end]); isSoname(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
}

// maxSoname is the maximum length of the name of a library.
const maxSoname = 255

// isSoname reports whether a text is the name of a library with a version.
func isSoname(text string) bool {
	base, version, ok := strings.Cut(text, ".so.")
	return ok && strings.HasPrefix(base, "lib") && strings.Trim(version, "0123456789.") == "" && version != "" &&
		!strings.ContainsFunc(base, func(r rune) bool {
			return !strings.ContainsRune("_+-.", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		})
}

// services returns the names of the libraries that the C library opens for the services in /etc/nsswitch.conf
// (nsswitch.conf(5)).
func (s *search) services(o *object) (names []string) {
	if o.soname != "libc.so.6" {
		return nil
	}
	text, err := os.ReadFile(s.Root + "/etc/nsswitch.conf")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		_, services, _ := strings.Cut(line, ":")
		for _, service := range strings.Fields(services) {
			if name := "libnss_" + service + ".so.2"; isSoname(name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Imports reports whether a program, or a library that it is linked with, imports a function. The library that defines
// the function does not count.
func (h Host) Imports(program, function string) bool {
	needs, err := h.Find(program)
	if err != nil {
		return false
	}
	files := []string{program}
	for _, l := range needs.Libraries {
		files = append(files, l.Path)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		e, err := elf.Open(h.Root + file)
		if err != nil {
			return false
		}
		defer e.Close()
		symbols, _ := e.ImportedSymbols() // an error means that there are none
		return slices.ContainsFunc(symbols, func(s elf.ImportedSymbol) bool { return s.Name == function })
	})
}
