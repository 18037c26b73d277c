package image

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// kernelCode matches the functions of the kernel: of these packages, and the random number generator ChaCha8 of the
// standard library. They may call functions of package runtime only as mayCall permits.
var kernelCode = regexp.MustCompile(`^loam/(kernel|kernel/(page|space|thread|signal|timekeeper)|boot|boot/acpi|arch/amd64|exec/vdso)\.|^math/rand/v2\.\(\*ChaCha8\)\.|^internal/chacha8rand\.`)

// mayCall matches the functions of package runtime that the kernel may call. They neither allocate nor depend on
// the current goroutine. The functions named panic report a wrong index, and end in a crash with a trace.
var mayCall = regexp.MustCompile(`^runtime\.(mem(move|equal|clrNoHeapPointers)|duff(zero|copy)|panic\w+|morestack\w*\.abi0|loamSymbol)$`)

// The kernel calls only permitted functions of package runtime: see the comment of package kernel.
func TestKernelCalls(t *testing.T) {
	program := filepath.Join(t.TempDir(), "guest")
	if err := os.WriteFile(program, built(t), 0o755); err != nil {
		t.Fatal(err)
	}
	listing := exec.Command("go", "tool", "objdump", "-s", `^loam/(kernel|boot|arch|exec/vdso)|^math/rand/v2\..*ChaCha8|^internal/chacha8rand`, program)
	out, err := listing.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := listing.Start(); err != nil {
		t.Fatal(err)
	}
	function := regexp.MustCompile(`^TEXT ([^(]+(?:\([^)]*\)[^(]*)?)\(SB\)`)
	call := regexp.MustCompile(`\sCALL ([^\s]+)\(SB\)`)
	in, calls := "", 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := function.FindStringSubmatch(lines.Text()); m != nil {
			in = m[1]
		}
		m := call.FindStringSubmatch(lines.Text())
		if m == nil || !kernelCode.MatchString(in) {
			continue
		}
		calls++
		old := strings.HasSuffix(m[1], ".abi0") // the symbol has the suffix of ABI0, the stack-based calling convention
		if !mayCall.MatchString(m[1]) && (old || !kernelCode.MatchString(m[1])) {
			t.Errorf("%s calls %s", in, m[1])
		}
	}
	if err := listing.Wait(); err != nil || calls < 100 {
		t.Errorf("%d calls were looked at, %v", calls, err)
	}
}
