package exec

import (
	"io"
	"strings"

	"loam/abi/linux"
	"loam/mem"
)

const (
	// lineSize is the number of bytes of a file that Linux searches for a `#!` line: BINPRM_BUF_SIZE minus one.
	lineSize = 255
	// maxDepth is the greatest number of scripts in a chain in which the interpreter of each script is itself a script
	// (`#!`).
	maxDepth = 5
)

// File is an open executable file.
type File struct {
	Reader io.ReaderAt
	Object mem.Object // supplies the pages of mappings of the file; nil if the Plan is never applied
}

// Opener opens a file for execution. Its errors are those of execve(2): ENOENT, EACCES for a file that is not
// regular or not executable, and others.
type Opener func(path string) (File, error)

// Program is an ELF file that was found by following `#!` lines.
type Program struct {
	File File
	Path string   // path of the file that was opened last
	Argv []string // arguments, preceded by those that `#!` lines add
}

// Resolve opens path and follows `#!` lines, at most five. Errors: ELOOP for more than five, ENOEXEC for lines that
// Linux does not accept, and the errors of open.
func Resolve(path string, argv []string, open Opener) (Program, error) {
	if len(argv) == 0 {
		argv = []string{""} // Linux replaces an empty argument list in the same way (since 5.18)
	}
	p := Program{Path: path, Argv: argv}
	for depth := 0; ; depth++ {
		if depth > maxDepth {
			return p, linux.ELOOP
		}
		file, err := open(p.Path)
		if err != nil {
			return p, err
		}
		line := make([]byte, lineSize) // if the file is shorter, the rest of line is zeros
		if _, err := file.Reader.ReadAt(line, 0); err != nil && err != io.EOF {
			return p, err
		}
		if !strings.HasPrefix(string(line), "#!") {
			p.File = file
			return p, nil
		}
		interp, arg, err := parseLine(string(line))
		if err != nil {
			return p, err
		}
		front := []string{interp}
		if arg != "" {
			front = append(front, arg)
		}
		p.Argv = append(append(front, p.Path), p.Argv[1:]...)
		p.Path = interp
	}
}

const blanks = " \t"

// parseLine splits the first lineSize bytes of a file, which begin with "#!". The interpreter's path ends at a blank or
// a zero byte; the rest of the line is one argument. If the line is longer than lineSize, it is accepted only if it
// contains the complete path (fs/binfmt_script.c).
func parseLine(text string) (interp, arg string, err error) {
	text = text[2:]
	if line, _, ok := strings.Cut(text, "\n"); ok {
		text = line
	} else if path := strings.TrimLeft(text, blanks); !strings.ContainsAny(path, blanks+"\x00") {
		return "", "", linux.ENOEXEC
	}
	text = strings.Trim(text, blanks)
	if text == "" {
		return "", "", linux.ENOEXEC
	}
	n := strings.IndexAny(text, blanks+"\x00")
	if n < 0 {
		return text, "", nil
	}
	interp = text[:n]
	if text[n] != 0 {
		arg = cString([]byte(strings.TrimLeft(text[n:], blanks)))
	}
	if interp == "" {
		return "", "", linux.EACCES // the empty path is the current directory
	}
	return interp, arg, nil
}
