//go:build linux && amd64

package exec_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	loam "loam/exec"
	"loam/mem"
	"loam/mem/cache"
	"loam/mem/memtest"
)

// started is the result for a program for which execve(2) succeeds on Linux, even if Linux kills it later.
const started = "started"

// onLinux returns the error with which execve(2) fails on the host, or started.
func onLinux(t *testing.T, path string, argv, envp []string) string {
	t.Helper()
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: envp, Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		return err.Error()
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	_, _ = syscall.Wait4(pid, nil, 0, nil)
	return started
}

// here returns the error with which Loam's plan for the program fails, or the constant started.
func here(t testing.TB, path string, argv, envp []string) string {
	memory := memtest.NewMemory(8)
	opener := open(t, cache.New(memory, cache.Limits{}))
	program, err := loam.Resolve(path, argv, opener)
	if err != nil {
		return err.Error()
	}
	p, err := loam.Make(loam.Request{
		Path: path, Argv: program.Argv, Envp: envp, File: program.File, Open: opener,
		Random: func() uint64 { return 0 }, StackLimit: 8 << 20,
	})
	if err != nil {
		return err.Error()
	}
	m := mem.New(mem.Config{
		Memory: memory, Tables: memtest.NewTables(memory), Account: &mem.Account{Total: 1 << 20}, Layout: p.Layout,
		Limits: mem.Limits{AS: mem.Infinite, Data: mem.Infinite, Stack: 8 << 20},
	})
	defer m.Destroy()
	if err := p.Apply(m); err != nil {
		return err.Error()
	}
	return started
}

func writeProgram(t testing.TB, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestErrorsAsLinux checks that an ELF file with one wrong value in a header fails with the same error as on Linux. Errors
// that Linux detects only after it has released the old program are not compared.
func TestErrorsAsLinux(t *testing.T) {
	good, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	interp := bytes.Index(good, []byte("/lib64/ld-linux"))
	put := func(offset int, b ...byte) func([]byte) []byte {
		return func(f []byte) []byte { copy(f[offset:], b); return f }
	}
	dir := t.TempDir()
	for name, lie := range map[string]func([]byte) []byte{
		"nothing":              put(0),
		"magic":                put(0, 0),
		"a relocatable file":   put(16, 1),
		"another processor":    put(18, 183),
		"header size":          put(54, 32),
		"no headers":           put(56, 0, 0),
		"many headers":         put(56, 0xff, 0xff),
		"headers outside":      put(32, 0, 0, 0, 0, 1),
		"empty":                func(f []byte) []byte { return nil },
		"three bytes":          func(f []byte) []byte { return f[:3] },
		"half a header":        func(f []byte) []byte { return f[:40] },
		"half the headers":     func(f []byte) []byte { return f[:200] },
		"loader missing":       put(interp, []byte("/nolib")...),
		"loader is a folder":   put(interp, []byte("/tmp\x00")...),
		"loader is text":       put(interp, []byte("/etc/passwd\x00")...),
		"loader is not quoted": put(interp+len("/lib64/ld-linux-x86-64.so.2"), 'x'),
	} {
		path := writeProgram(t, dir, strings.ReplaceAll(name, " ", "-"), lie(bytes.Clone(good)))
		a, b := here(t, path, []string{"x"}, nil), onLinux(t, path, []string{"x"}, nil)
		if a != b {
			t.Errorf("%s: %s, on Linux %s", name, a, b)
		}
	}
}

// TestLoaderIsNoELF: a program whose loader is no ELF file fails with ELIBBAD.
func TestLoaderIsNoELF(t *testing.T) {
	good, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "l")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	interp := bytes.Index(good, []byte("/lib64/ld-linux"))
	for _, content := range [][]byte{bytes.Repeat([]byte("no ELF "), 100), good[:3000], bytes.Replace(good, []byte{62, 0}, []byte{3, 0}, 1)} {
		loader := writeProgram(t, dir, "l", content)
		program := writeProgram(t, dir, "p", append(append(bytes.Clone(good[:interp]), loader+"\x00"...), good[interp+len(loader)+1:]...))
		if a, b := here(t, program, []string{"x"}, nil), onLinux(t, program, []string{"x"}, nil); a != b && b != started {
			t.Errorf("%.10q: %s, on Linux %s", content, a, b)
		}
	}
}

// TestLimitsAsLinux: arguments may take a quarter of the limit of the stack, and each string 128 KiB, as on Linux.
func TestLimitsAsLinux(t *testing.T) {
	long := strings.Repeat("a", 128<<10-1)
	for name, argv := range map[string][]string{
		"the longest string": {long},
		"one byte more":      {long + "a"},
		"15 strings":         manyStrings(15, long),
		"16 strings":         manyStrings(16, long),
		"17 strings":         manyStrings(17, long),
		"many short":         manyStrings(100000, "a"),
		"too many short":     manyStrings(210000, "a"),
		"far too many":       manyStrings(300000, "a"),
		"none":               {},
	} {
		if a, b := here(t, "/bin/true", argv, nil), onLinux(t, "/bin/true", argv, nil); a != b {
			t.Errorf("%s: %s, on Linux %s", name, a, b)
		}
	}
}

func manyStrings(n int, s string) (all []string) {
	for range n {
		all = append(all, s)
	}
	return all
}

// TestMain makes the test's own binary usable as the interpreter in the #! line of a script: it then prints its arguments.
func TestMain(m *testing.M) {
	if os.Getenv("PRINT_ARGUMENTS") != "" {
		fmt.Printf("%q", os.Args)
		return
	}
	os.Exit(m.Run())
}

// TestScriptsAsLinux: lines that begin with #! give the same arguments, or the same error.
func TestScriptsAsLinux(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "s") // a short path, since a #! line has at most 256 bytes
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	printer := dir + "/i"
	if err := os.Symlink(self, printer); err != nil {
		t.Fatal(err)
	}
	script := func(name, text string) string { return writeProgram(t, dir, name, []byte(text)) }
	previous := printer
	for depth := range 7 { // each script is the interpreter of the next one
		previous = script(fmt.Sprint("depth", depth), "#!"+previous+"\n")
	}
	pad := strings.Repeat(" ", 300)
	cases := []string{
		"#!" + printer + "\n", "#! \t" + printer + "\t \n", "#!" + printer, "#!" + printer + " one two  three \t\nx",
		"#!" + printer + "\targ", "#!" + printer + " a\x00b\n", "#!" + printer + "\x00 a\n", "#!\n", "#! \t \n", "#!", "#!" + pad,
		"#!" + pad + printer + "\n", "#!" + printer + pad + "x\n", "#!" + printer + " " + strings.Repeat("y", 300) + "\n",
		"#!" + strings.Repeat("/x", 150) + "\n", "#!/nonexistent\n", "# " + printer + "\n", "#!" + printer + "\r\n", "#!" + dir + "/depth2 opt\n",
		"#!" + printer + strings.Repeat(" ", 256-2-len(printer)), "#!" + printer + "\n" + strings.Repeat("z", 400),
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 60 { // random lines of the bytes that have a meaning in a #! line
		text := []byte("#!" + printer)
		for range r.IntN(8) {
			at := 2 + r.IntN(len(text)-1)
			text = append(text[:at:at], append([]byte{" \t\x00\nxy"[r.IntN(6)]}, text[at:]...)...)
		}
		cases = append(cases, string(text))
	}
	for n, text := range cases {
		compareScript(t, script(fmt.Sprint("s", n), text))
	}
	for depth := range 7 {
		compareScript(t, fmt.Sprint(dir, "/depth", depth))
	}
}

func compareScript(t *testing.T, path string) {
	t.Helper()
	memory := memtest.NewMemory(1)
	p, err := loam.Resolve(path, []string{"zero", "one"}, open(t, cache.New(memory, cache.Limits{})))
	a := fmt.Sprintf("%q", p.Argv)
	if err == nil {
		_, err = loam.Parse(p.File.Reader)
	}
	if err != nil {
		a = err.Error()
	}
	c := exec.Cmd{Path: path, Args: []string{"zero", "one"}, Env: []string{"PRINT_ARGUMENTS=1"}}
	out, err := c.Output()
	b := string(out)
	if err != nil {
		b = err.Error()[strings.LastIndex(err.Error(), ": ")+2:]
	}
	if a != b {
		text, _ := os.ReadFile(path)
		t.Errorf("%.80q: %s, on Linux %s", text, a, b)
	}
}

// TestParse compares the parser with package debug/elf, on the programs of this machine.
func TestParse(t *testing.T) {
	paths, _ := filepath.Glob("/usr/bin/*")
	compared := 0
	for _, path := range paths {
		want, err := elf.Open(path)
		if err != nil {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := loam.Parse(f)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if a, b := summary(got), summaryOf(want); a != b {
			t.Errorf("%s: %s, debug/elf has %s", path, a, b)
		}
		compared++
		f.Close()
		want.Close()
	}
	if compared < 20 {
		t.Errorf("only %d programs compared", compared)
	}
}

func summary(i *loam.Image) string {
	s := fmt.Sprintf("%v %x %q", i.Fixed, i.Entry, i.Interp)
	for _, g := range i.Segments {
		s += fmt.Sprintf(" [%x %x %x %x %v]", g.Addr, g.Offset, g.FileSize, g.Memory, g.Prot)
	}
	return s
}

func summaryOf(f *elf.File) string {
	s, interp := "", ""
	for _, p := range f.Progs {
		switch p.Type {
		case elf.PT_INTERP:
			b := make([]byte, p.Filesz-1)
			_, _ = p.ReadAt(b, 0)
			interp = string(b)
		case elf.PT_LOAD:
			prot := mem.Prot(0)
			for flag, bit := range map[elf.ProgFlag]mem.Prot{elf.PF_R: mem.Read, elf.PF_W: mem.Write, elf.PF_X: mem.Exec} {
				if p.Flags&flag != 0 {
					prot |= bit
				}
			}
			s += fmt.Sprintf(" [%x %x %x %x %v]", p.Vaddr, p.Off, p.Filesz, p.Memsz, prot)
		}
	}
	return fmt.Sprintf("%v %x %q", f.Type == elf.ET_EXEC, f.Entry, interp) + s
}

// FuzzMake: no file makes the parser, the plan or its application panic, and what they accept is
// within the address space.
func FuzzMake(f *testing.F) {
	if good, err := os.ReadFile("/bin/true"); err == nil {
		f.Add(good[:2048])
	}
	header := make([]byte, 64+56)
	copy(header, "\x7fELF\x02\x01\x01")
	for offset, v := range map[int]uint16{16: 2, 18: 62, 32: 64, 54: 56, 56: 1, 64: 1, 68: 7, 64 + 34: 1, 64 + 40: 0x4000} {
		binary.LittleEndian.PutUint16(header[offset:], v)
	}
	binary.LittleEndian.PutUint64(header[64+16:], 0x400000)
	f.Add(header)
	f.Add([]byte("#!/bin/sh -e\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		memory := memtest.NewMemory(2)
		c := cache.New(memory, cache.Limits{})
		file := loam.File{Reader: bytes.NewReader(content), Object: c.NewFile(nil, int64(len(content)), mem.Label{})}
		opener := func(string) (loam.File, error) { return file, nil }
		program, err := loam.Resolve("/p", []string{"p"}, opener)
		if err != nil {
			return
		}
		p, err := loam.Make(loam.Request{
			Path: "/p", Argv: program.Argv, File: program.File, Open: opener, Random: rand.New(rand.NewPCG(1, 2)).Uint64,
			Randomise: true, StackLimit: 8 << 20,
		})
		if err != nil {
			return
		}
		for _, m := range p.Mappings {
			if end := m.Request.Addr + m.Request.Length; end > mem.End || end <= m.Request.Addr {
				t.Fatalf("a mapping from %x to %x", m.Request.Addr, end)
			}
		}
		m := mem.New(mem.Config{
			Memory: memory, Tables: memtest.NewTables(memory), Account: &mem.Account{Total: 1 << 10}, Layout: p.Layout,
			Limits: mem.Limits{AS: mem.Infinite, Data: mem.Infinite, Stack: 8 << 20},
		})
		_ = p.Apply(m)
		m.Destroy()
	})
}
