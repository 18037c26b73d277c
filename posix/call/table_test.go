package call

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"strings"
	"testing"

	"loam/abi/linux"
)

var update = flag.Bool("update", false, "write docs/syscalls.md and kernel/table.go anew")

// TestTable checks that every row names the layer that serves the system call, and that package posix serves or
// rejects each call assigned to it.
func TestTable(t *testing.T) {
	seen := map[int]string{}
	for _, r := range Table {
		if other, ok := seen[r.Number]; ok {
			t.Errorf("%s has the number of %s", r.Name, other)
		}
		seen[r.Number] = r.Name
		if r.Number < 0 || r.Number >= Numbers-1 {
			t.Errorf("%s has the number %d", r.Name, r.Number)
		}
		personality := r.Who&Personality != 0
		switch {
		case r.Who == 0:
			t.Errorf("nobody answers %s", r.Name)
		case personality && (r.Serve == nil) != (r.Errno != 0):
			t.Errorf("%s is served and refused, or neither", r.Name)
		case !personality && (r.Serve != nil || r.Errno != 0 || r.Missing != ""):
			t.Errorf("%s is not the personality's", r.Name)
		case personality && r.Who&Host != 0 && r.Serve == nil:
			t.Errorf("%s is the host's, and refused by the personality", r.Name)
		case r.Who&AtOnce != 0 && r.Who&Core == 0 && r.Name != "fork" && r.Name != "vfork":
			t.Errorf("%s is answered at once by a core that does not serve it", r.Name)
		}
		if strings.Trim(string(r.Args), "fdspvnoi") != "" || len(r.Args) > 6 {
			t.Errorf("%s has the arguments %q", r.Name, r.Args)
		}
		if got := ByNumber(r.Number); got == nil || got.Name != r.Name {
			t.Errorf("%s is not found by its number", r.Name)
		}
	}
	if ByNumber(Numbers) != nil {
		t.Error("there is a call beyond all numbers")
	}
}

func TestArguments(t *testing.T) {
	if got := Arguments("fpnipp").Addresses(); got != 0b110010 {
		t.Errorf("addresses of recvfrom: %b", got)
	}
	if !Arguments("fpn").DescriptorFirst() || Arguments("dsi").DescriptorFirst() || Arguments("").DescriptorFirst() {
		t.Error("DescriptorFirst")
	}
}

// TestGenerated checks that the files generated from the table are up to date. To regenerate them:
//
//	go test ./posix/call -update
func TestGenerated(t *testing.T) {
	for file, want := range map[string]string{"../../docs/syscalls.md": document(), "../../kernel/table.go": core(t)} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what the table says (%v): go test ./posix/call -update", file, err)
		}
	}
	for _, f := range families {
		if _, err := os.Stat("../../" + f.test); err != nil {
			t.Error(err)
		}
	}
}

// families are the parts of the table, each with the test that exercises its calls.
var families = []struct {
	title string
	test  string
	rows  []Row
}{
	{"Descriptors", "posix/file_test.go", filesRows},
	{"Names of files", "posix/file_test.go", pathsRows},
	{"Sockets", "posix/inet_test.go", socketsRows},
	{"Waiting", "posix/wait_test.go", waitingRows},
	{"The process", "posix/ids_test.go", processRows},
}

func document() string {
	var b strings.Builder
	b.WriteString(documentHead)
	for _, f := range families {
		fmt.Fprintf(&b, "\n## %s\n\nTests: `%s`, and `unikernel/errno_test.go` for wrong arguments.\n\n", f.title, f.test)
		b.WriteString("| call | support | limits | effect of a signal while the call waits | served by, as a process | served by, in a virtual machine |\n|---|---|---|---|---|---|\n")
		for _, r := range f.rows {
			if r.Who&(Personality|Host) != 0 {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.Name, support(r), r.Missing, r.Signal, answers(r, "Linux", Host), answers(r, "kernel core", Core))
			}
		}
	}
	return b.String()
}

func support(r Row) string {
	switch {
	case r.Who&Personality == 0:
		return "passed on to the kernel in the last columns"
	case r.Serve == nil:
		return "always returns " + errnoName(r.Errno)
	case r.Missing != "":
		return "with limits"
	}
	return "full"
}

// answers returns the last columns of a row: "Loam" if package posix serves the call; the text other if the layer
// with the given bit serves it; otherwise ENOSYS.
func answers(r Row, other string, bit Who) string {
	switch {
	case r.Who&Personality != 0:
		return "Loam"
	case r.Who&bit != 0:
		return other
	}
	return "ENOSYS"
}

func errnoName(e linux.Errno) string {
	for name, errno := range map[string]linux.Errno{
		"ENOSYS": linux.ENOSYS, "ECHILD": linux.ECHILD, "EPERM": linux.EPERM, "ESRCH": linux.ESRCH, "EINVAL": linux.EINVAL, "EOPNOTSUPP": linux.EOPNOTSUPP,
	} {
		if e == errno {
			return name
		}
	}
	return e.Error()
}

const documentHead = `# System calls

This page is made from the table in ` + "`posix/call/table.go` by `go test ./posix/call -update`" + `.

The tables list the system calls of Go programs. Linux programs in a virtual machine have more calls
([linux.md](linux.md)). A call that is not listed returns ENOSYS. The column *support* has these values:

- *full* means that no difference from Linux is known, except for the differences in CAVEATS.md.
- *with limits* means that the call is supported within the limits that the next column describes.
- *always returns* means that the call is not supported and always returns the named error.
- *passed on* means that the code of the table does not serve the call, which concerns only the calling process. If the
  program runs as a process, Linux serves the call. In a virtual machine, the core of Loam's kernel (package kernel) serves it.

The fourth column describes what happens if a signal handler runs while the call waits (signal(7)). *Restarts* means that the
call is restarted if the handler has SA_RESTART, and otherwise fails with EINTR. *Fails* means that the call always fails with
EINTR. An empty cell means that signals do not interrupt the call. This column concerns only Linux programs: in a Go program
the runtime's handlers have SA_RESTART, and signals do not interrupt calls that Loam serves.

The last two columns name the code that serves the call: *Loam* is the table in ` + "`posix/call`" + `, *kernel core* is the core of Loam's
kernel below the Go runtime, and *Linux* is the host's kernel. *ENOSYS* means that the call is not supported there.
`

// core generates kernel/table.go, the table of the system calls that package kernel serves and of their functions. If
// a function is missing, the table does not compile. If a function is not in the table, a linter reports it as
// unused.
func core(t *testing.T) string {
	var b bytes.Buffer
	b.WriteString(`// Code generated by go test ./posix/call -update; DO NOT EDIT.

package kernel

import (
	"loam/abi/linux"
	"loam/arch/amd64"
)

// call serves a system call: what the Go runtime needs of Linux, and what a program may ask
// that package posix leaves to the kernel.
//
// long: it is a table.
func (k *core) call(c *cpu, f *amd64.Frame) (result int64, returns bool) {
	switch f.AX {
`)
	for _, number := range numbers(Core) {
		name := ByNumber(number).Name
		fmt.Fprintf(&b, "case linux.SYS_%s:\nreturn k.%s(c, f)\n", strings.ToUpper(name), functionOf(name))
	}
	b.WriteString(`}
	return k.ownCall(c, f)
}

// answersAtOnce reports whether the kernel answers the SYSCALL instruction itself: calls about
// memory, threads, signals or time, some of which cannot be made by a function.
func answersAtOnce(number uint64) bool {
	switch number {
	case `)
	for i, number := range numbers(AtOnce) {
		if i > 0 {
			b.WriteString(",\n")
		}
		b.WriteString("linux.SYS_" + strings.ToUpper(ByNumber(number).Name))
	}
	b.WriteString(":\nreturn true\n}\nreturn false\n}\n")
	text, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// functionOf returns the name of the method of core in package kernel that serves a call, such as
// callSchedYield.
func functionOf(name string) string {
	s := "call"
	for part := range strings.SplitSeq(name, "_") {
		s += strings.ToUpper(part[:1]) + part[1:]
	}
	return s
}

// numbers returns the numbers of the system calls that a layer serves, in ascending order.
func numbers(who Who) (list []int) {
	for number := range Numbers {
		if r := ByNumber(number); r != nil && r.Who&who != 0 {
			list = append(list, number)
		}
	}
	return list
}
