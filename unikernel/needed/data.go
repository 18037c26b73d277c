// Package needed finds the files of the host that a program of the host needs when it runs on Loam: its interpreters, and
// data of its libraries. Package exec/library finds its loader and its libraries.
package needed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loam/exec/library"
)

// Files of the host that a Linux program of the host gets in addition to its loader and its libraries: libraries that it
// may open at run time, and data that the C library and the terminal library read. With them, a program that has no files of
// its own behaves as on the host.

// File is a file or a folder of the host that a program gets.
type File struct {
	Host, Guest string
	Changeable  bool // the program may change its copy
	Deferred    bool // the guest loads the file when it is first accessed
}

// hostData lists data of libraries. A program gets it if it is linked with the library, or imports the function.
var hostData = []struct {
	folders           []string // the first that exists
	library, function string
}{
	{[]string{"/usr/lib/x86_64-linux-gnu/gconv", "/usr/lib64/gconv"}, "", "iconv_open"}, // converters of iconv(3)
	{[]string{"/usr/lib/locale/C.utf8"}, "libc.so.6", ""},                               // the locale C.UTF-8
	{[]string{"/lib/terminfo"}, "libtinfo.so.6", ""},                                    // common types of terminals
}

// ldCache is the file by which the dynamic loader finds libraries outside of its default folders.
const ldCache = "/etc/ld.so.cache"

// Data returns the libraries that a program of the host may open at run time, and the data of its libraries.
func Data(program string, needs library.Needs) (all []File) {
	opened, err := library.Host{}.Opened(program)
	if err != nil {
		return nil // Find has succeeded, so the program can run without them
	}
	for _, l := range opened {
		if real, err := filepath.EvalSymlinks(l.Path); err == nil {
			all = append(all, File{Host: real, Guest: l.Path, Changeable: true})
		}
	}
	if (library.Needs{Libraries: slices.Concat(needs.Libraries, opened)}).NeedsCache() {
		all = append(all, File{Host: ldCache, Guest: ldCache, Changeable: true})
	}
	linked := func(name string) bool {
		return slices.ContainsFunc(needs.Libraries, func(l library.Library) bool { return l.Name == name })
	}
	for _, d := range hostData {
		if d.library != "" && !linked(d.library) || d.function != "" && !(library.Host{}).Imports(program, d.function) {
			continue
		}
		for _, folder := range d.folders {
			if st, err := os.Stat(folder); err == nil && st.IsDir() {
				all = append(all, File{Host: folder, Guest: folder, Deferred: true})
				break
			}
		}
	}
	return append(all, hostLocale()...)
}

// hostLocale returns the locale that the environment names, if it has a folder of its own, and the archive of locales
// otherwise.
func hostLocale() []File {
	const locales = "/usr/lib/locale"
	for _, variable := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		name, charset, _ := strings.Cut(os.Getenv(variable), ".")
		switch {
		case name == "":
			continue
		case name == "C" || name == "POSIX":
			return nil
		}
		if charset != "" {
			name += "." + strings.ToLower(strings.ReplaceAll(charset, "-", "")) // as localedef(1) names its folders
		}
		for _, path := range []string{filepath.Join(locales, filepath.Base(name)), filepath.Join(locales, "locale-archive")} {
			if _, err := os.Stat(path); err == nil {
				return []File{{Host: path, Guest: path}}
			}
		}
		return nil
	}
	return nil
}
