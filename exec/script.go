package exec

import (
	"io"
	"strings"

	"loam/abi/linux"
	"loam/mem"
)

const (
	// lineSize is the number of bytes of a file that Linux looks at: BINPRM_BUF_SIZE without its last byte.
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
	Path string   // path that was opened last
	Argv []string // arguments, including those that `#!` lines add in front
}

// Resolve opens path and follows `#!` lines, at most five. Errors: ELOOP for more,
// ENOEXEC for lines that Linux does not accept, those of open.
func Resolve(path string, argv []string, open Opener) (Program, error) {
	if len(argv) == 0 {
		argv = []string{""} // as Linux since 5.18
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
		line := make([]byte, lineSize) // the rest of a short file is zeros
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

// parseLine takes the first lineSize bytes of a file apart, which begin with "#!". The interpreter ends
// at a blank or a zero byte; all that follows on the line is one argument. A line that is cut off
// is accepted only if the interpreter's path is complete (fs/binfmt_script.c).
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
