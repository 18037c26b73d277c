package overlay

import (
	"runtime"
	"strings"
	"testing"
)

const sampleAssembly = `// A comment about SYSCALL.
TEXT runtime·exitThread(SB),NOSPLIT,$0-8
	MOVL	$SYS_exit, AX
	SYSCALL
	INT	$3

TEXT ·other<ABIInternal>(SB),NOSPLIT,$0
	SYSCALL // the kernel
	RET
`

// Each SYSCALL instruction is replaced by a call. In functions whose stack may no longer exist at that point, it is
// replaced by a jump.
func TestReplaceSyscalls(t *testing.T) {
	got, err := replaceSyscalls("x.s", []byte(sampleAssembly))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(sampleAssembly, "\tSYSCALL\n", "\tJMP	runtime·loamExit(SB)\n", 1)
	want = strings.Replace(want, "\tSYSCALL // the kernel\n", "\tCALL	runtime·loamGate(SB)\n", 1)
	if string(got) != want {
		t.Errorf("%s", got)
	}
}

// An assembly file without a SYSCALL instruction, or with one in an unknown form, is rejected.
func TestReplaceSyscallsRefuses(t *testing.T) {
	for _, src := range []string{"TEXT f(SB),4,$0\n\tRET\n", "\tSYSCALL\n\tMOVL $1, AX; SYSCALL\n"} {
		if got, err := replaceSyscalls("x.s", []byte(src)); err == nil {
			t.Errorf("%q became %q", src, got)
		}
	}
}

// No SYSCALL instruction is left in the files of the installed toolchain.
func TestAssemblyInstalled(t *testing.T) {
	files, err := Generate(goroot(t), runtime.Version(), Ring0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range assembly {
		for line := range strings.Lines(string(files[name])) {
			if code, _, _ := strings.Cut(line, "//"); strings.TrimSpace(code) == "SYSCALL" {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}
