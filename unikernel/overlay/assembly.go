package overlay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// In ring 0 a system call is a function call: in the assembly of the standard
// library each SYSCALL instruction is replaced. What takes its place keeps the
// instruction's contract (_vm/runtime/loam_entry_amd64.s), so that nothing around
// it changes.

// assembly are the files that have SYSCALL instructions.
var assembly = []string{
	"runtime/sys_linux_amd64.s",
	"runtime/time_linux_amd64.s",
	"internal/runtime/syscall/linux/asm_linux_amd64.s",
	"syscall/asm_linux_amd64.s",
}

const (
	callGate = "CALL	runtime·loamGate(SB)"
	jumpExit = "JMP	runtime·loamExit(SB)"
)

// stackless are the functions whose stack may belong to another by the time of
// the call: no return address may be pushed there.
var stackless = []string{"runtime·exitThread"}

var (
	textLine    = regexp.MustCompile(`^TEXT\s+([^(<]+)`)
	syscallLine = regexp.MustCompile(`^\s*SYSCALL\s*(//.*)?\n?$`)
)

// replaceSyscalls returns an assembly file with its SYSCALL instructions
// replaced. It is an error if there is none, or one that cannot be told for sure.
func replaceSyscalls(name string, src []byte) ([]byte, error) {
	var out bytes.Buffer
	function, replaced := "", 0
	for line := range strings.Lines(string(src)) {
		if m := textLine.FindStringSubmatch(line); m != nil {
			function = m[1]
		}
		switch code, _, _ := strings.Cut(line, "//"); {
		case syscallLine.MatchString(line):
			replaced++
			instead := callGate
			for _, f := range stackless {
				if f == function {
					instead = jumpExit
				}
			}
			line = "\t" + instead + "\n"
		case regexp.MustCompile(`\bSYSCALL\b`).MatchString(code):
			return nil, fmt.Errorf("%s: %q", name, strings.TrimSpace(line))
		}
		out.WriteString(line)
	}
	if replaced == 0 {
		return nil, fmt.Errorf("%s: no SYSCALL instruction", name)
	}
	return out.Bytes(), nil
}

// addAssembly adds the standard library's assembly, with calls in the place of
// SYSCALL instructions.
func (files Files) addAssembly(goroot string) error {
	for _, name := range assembly {
		src, err := os.ReadFile(filepath.Join(goroot, "src", filepath.FromSlash(name)))
		if err == nil {
			files[name], err = replaceSyscalls(name, src)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
