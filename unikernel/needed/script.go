package needed

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"

	"loam/exec"
)

// A program may be a script. The guest gets the script and the interpreter that its first line names, which may be a script
// itself. If the interpreter is env(1), the guest also gets the program that env finds by PATH.

// Started returns the files that the execution of a program of the host opens: the program, and the interpreters of
// scripts.
func Started(path string) (files []string, err error) {
	for next := path; next != ""; {
		opened, argv, err := interpreters(next)
		if err != nil {
			return nil, err
		}
		files = append(files, opened...)
		if len(files) > mostFiles {
			return nil, fmt.Errorf("%s: env starts scripts that start env again: name another interpreter in its first line", path)
		}
		next = ""
		if name := envStarts(opened[len(opened)-1], argv); name != "" {
			if next, err = osexec.LookPath(name); err != nil {
				return nil, fmt.Errorf("%s needs the interpreter %s, which is not in PATH: install it", path, name)
			}
		}
	}
	return files, nil
}

// mostFiles is the greatest number of files that Started returns.
const mostFiles = 16

// interpreters returns a file and its interpreters, in the order in which execve(2) opens them, and the arguments of the
// last.
func interpreters(path string) (opened, argv []string, err error) {
	var open *os.File
	p, err := exec.Resolve(path, []string{path}, func(name string) (exec.File, error) {
		open.Close()
		var err error
		if open, err = os.Open(name); err == nil {
			opened = append(opened, name)
		}
		return exec.File{Reader: open}, err
	})
	open.Close()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("%s needs the interpreter %s, which does not exist: install it", path, p.Path)
	case err != nil:
		return nil, nil, fmt.Errorf("%s: its first line: %w", path, err)
	}
	return opened, p.Argv, nil
}

// envStarts returns the name of the program that env(1) starts with the arguments of a script, or "" if the
// interpreter is another one. With -S, env splits its first argument.
func envStarts(interpreter string, argv []string) (name string) {
	if filepath.Base(interpreter) != "env" || len(argv) < 3 {
		return ""
	}
	words := strings.Fields(strings.TrimPrefix(argv[1], "-S"))
	for _, w := range words {
		if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
			return w
		}
	}
	return ""
}

// IsELF reports whether a path names an ELF file.
func IsELF(path string) bool { return begins(path, "\x7fELF") }

// IsScript reports whether a path names a file whose first line names an interpreter.
func IsScript(path string) bool { return begins(path, "#!") }

// begins reports whether a path names a regular file that begins with the bytes of magic.
func begins(path, magic string) bool {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, len(magic))
	_, err = io.ReadFull(f, b)
	return err == nil && string(b) == magic
}
