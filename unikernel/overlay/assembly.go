package overlay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// In ring 0 a system call is a function call. Each SYSCALL instruction in the standard library's assembly
// is replaced by a call of a function that keeps the instruction's contract
// (_vm/runtime/loam_entry_amd64.s). The surrounding code stays unchanged.

// assembly lists the files with SYSCALL instructions.
var assembly = []string{
	"runtime/sys_linux_amd64.s",
	"runtime/time_linux_amd64.s",
	"internal/runtime/syscall/linux/asm_linux_amd64.s",
	"syscall/asm_linux_amd64.s",
}

// Replacements of the SYSCALL instruction.
const (
	callGate = "CALL	runtime·loamGate(SB)"
	jumpExit = "JMP	runtime·loamExit(SB)"
)

// stackless are functions whose stack may already be in use by another thread at the time of the system
// call. No return address may be pushed there, so the instruction becomes a jump.
var stackless = []string{"runtime·exitThread"}

var (
	textLine    = regexp.MustCompile(`^TEXT\s+([^(<]+)`)
	syscallLine = regexp.MustCompile(`^\s*SYSCALL\s*(//.*)?\n?$`)
)

// replaceSyscalls returns an assembly file with its SYSCALL instructions replaced. It fails if there is
// none, or if a line mentions SYSCALL in another form.
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

// addAssembly adds the standard library's assembly with SYSCALL instructions replaced.
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
