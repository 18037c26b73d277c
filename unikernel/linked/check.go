package linked

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
	"strings"
)

// Complaint is the error for a program in which code or data of another origin replaces a part of the Go runtime.
// Package sandbox confines such a program like any other. It is rejected because it does not work on Loam, and because
// it was probably written to do harm.
type Complaint struct {
	Symbol string // name of the symbol whose definition is not part of the Go runtime
	File   string // source file that defines the symbol; empty: not known
	Why    string
}

// Error implements error.
func (c *Complaint) Error() string {
	if c.File == "" {
		return c.Symbol + " " + c.Why
	}
	return fmt.Sprintf("%s %s, in %s", c.Symbol, c.Why, c.File)
}

// Libraries is the error for a program for which the dynamic loader must load C libraries.
type Libraries struct{ Names []string }

// Error implements error.
func (l *Libraries) Error() string { return "it is linked with " + strings.Join(l.Names, ", ") }

// Check returns an error unless the file is a static Go program with an unmodified Go runtime.
func Check(f *elf.File) error {
	for _, check := range []func(*elf.File) error{checkKind, checkLibraries, checkSegments, checkConstructors, checkCgo, checkRuntime} {
		if err := check(f); err != nil {
			return err
		}
	}
	return nil
}

func checkKind(f *elf.File) error {
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 || f.Type != elf.ET_EXEC {
		return fmt.Errorf("%w: %v for %v", ErrProgram, f.Type, f.Machine)
	}
	return nil
}

func checkLibraries(f *elf.File) error {
	names, err := f.ImportedLibraries()
	// empty names come from a damaged section, which checkSegments rejects
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	if err != nil || len(names) == 0 {
		return err
	}
	return &Libraries{names}
}

// checkSegments rejects a program with an interpreter, which would run first, and segments that only an interpreter
// reads.
func checkSegments(f *elf.File) error {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return &Complaint{Symbol: "a segment " + p.Type.String(), Why: "asks for a dynamic linker (cgo_import_dynamic)"}
		}
	}
	return nil
}

// checkConstructors rejects sections with functions that a C loader would call at the start.
func checkConstructors(f *elf.File) error {
	for _, s := range f.Sections {
		switch s.Name {
		case ".init", ".init_array", ".preinit_array", ".ctors", ".fini", ".fini_array", ".dtors":
			if s.Size > 0 {
				return &Complaint{Symbol: "section " + s.Name, Why: "holds constructors or destructors"}
			}
		}
	}
	return nil
}

// checkCgo rejects a program in which a variable is set through which cgo makes the runtime call C functions. Package
// runtime declares these variables, and without cgo they are zero.
func checkCgo(f *elf.File) error {
	var complaint *Complaint
	_, err := eachSymbol(f, func(s symbol) { // without a symbol table, only checkRuntime examines the program
		if complaint != nil || !bytes.HasPrefix(s.name, []byte("_cgo_")) || int(s.section) >= len(f.Sections) {
			return
		}
		if f.Sections[s.section].Type != elf.SHT_NOBITS {
			complaint = &Complaint{Symbol: string(s.name), Why: "is defined, which is for cgo alone"}
		}
	})
	if err != nil || complaint == nil {
		return err
	}
	return complaint
}

// checkRuntime rejects functions of the runtime whose source file is outside the source folder of runtime.main.
func checkRuntime(f *elf.File) error {
	if f.Section(".text") == nil {
		return fmt.Errorf("%w: it has no text", ErrProgram)
	}
	table, err := readTable(f)
	if err != nil {
		return err
	}
	src, err := table.source()
	if err != nil {
		return err
	}
	own := map[uint32]bool{noFile: true} // files that were examined, by their offset in the table
	for i := range table.count {
		fn, err := table.at(i)
		if err != nil {
			return err
		}
		if !mayBeOwn(fn.name) {
			continue
		}
		pkg, ok := ownPackage(string(fn.name))
		if !ok {
			continue
		}
		at, err := table.fileOf(fn)
		if err != nil {
			return err
		}
		isOwnFile, examined := own[at]
		if !examined {
			isOwnFile = isOwn(string(text(table.files, uint64(at))), src)
			own[at] = isOwnFile
		}
		if !isOwnFile {
			file := string(text(table.files, uint64(at)))
			return &Complaint{Symbol: string(fn.name), File: file, Why: "is a function of package " + pkg + " that is defined elsewhere"}
		}
	}
	return nil
}

// source returns the folder of the source files of the runtime's toolchain, which is that of runtime.main.
func (t *funcTable) source() (string, error) {
	const first, within = "runtime.main", "runtime/proc.go"
	for i := range t.count {
		fn, err := t.at(i)
		if err != nil {
			return "", err
		}
		if string(fn.name) != first {
			continue
		}
		at, err := t.fileOf(fn)
		if err != nil {
			return "", err
		}
		file := string(text(t.files, uint64(at)))
		src, ok := strings.CutSuffix(file, within)
		if !ok {
			return "", &Complaint{Symbol: first, File: file, Why: "is a function of package runtime that is defined elsewhere"}
		}
		return src, nil
	}
	return "", fmt.Errorf("%w: it has no runtime.main", ErrProgram)
}

// mayBeOwn reports whether ownPackage can find a package for a function. It needs no string.
func mayBeOwn(function []byte) bool {
	if bytes.HasPrefix(function, []byte("_rt0_")) {
		return true
	}
	return slices.ContainsFunc(ownPackages, func(own string) bool {
		return len(function) > len(own) && string(function[:len(own)]) == own
	})
}

// ownPackages are the packages, with all packages below them, on whose functions the hook for system calls and the
// filter of system calls (package seal) rely.
var ownPackages = []string{"runtime", "internal/runtime", "internal/abi", "internal/bytealg", "internal/cpu", "syscall", "loamguest"}

// ownPackage returns the package of a function if it is one of ownPackages. The program's entry point,
// _rt0_amd64_linux, counts as a function of package runtime.
func ownPackage(function string) (string, bool) {
	if strings.HasPrefix(function, "_rt0_") {
		return "runtime", true
	}
	slash := strings.LastIndexByte(function, '/') + 1
	dot := strings.IndexByte(function[slash:], '.')
	if dot < 0 || strings.HasPrefix(function, "go:") || strings.HasPrefix(function, "type:") {
		return "", false
	}
	pkg := function[:slash+dot]
	return pkg, slices.ContainsFunc(ownPackages, func(own string) bool {
		return pkg == own || strings.HasPrefix(pkg, own+"/")
	})
}

// isOwn reports whether a source file belongs to the standard library, whose folders are below src. With -trimpath src
// is empty, and a file belongs to it if the first element of its path has no dot. Any package of the standard library
// is accepted: they define functions for one another in assembly, and the compiler inlines functions across packages. A
// function without a file is generated by the compiler or the linker.
func isOwn(file, src string) bool {
	if file == "" || strings.HasPrefix(file, "<") {
		return true
	}
	first, _, _ := strings.Cut(file, "/")
	if strings.HasPrefix(file, src) && (src != "" || first != "" && !strings.Contains(first, ".")) {
		return true
	}
	copied := copyOf(src)
	return copied != "" && strings.Contains(file, copied)
}

// Loam's cache has a folder for each copy of a toolchain. digestLen is the length of the name of such a folder, in characters.
const digestLen = 32

// copyOf returns "/goroot/DIGEST/src/", the end of the source path of a toolchain that was copied to Loam's cache, or
// "" for any other toolchain. The path before it may vary within one program: the go command's own cache can contain
// packages that were compiled from the same copy in another place.
func copyOf(src string) string {
	const folder = "/goroot/"
	i := strings.LastIndex(src, folder)
	if i < 0 || len(src[i:]) != len(folder)+digestLen+len("/src/") {
		return ""
	}
	return src[i:]
}
