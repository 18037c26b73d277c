//go:build linux && amd64

package exec_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"loam/abi/linux"
	"loam/exec"
	"loam/mem"
	"loam/mem/cache"
	"loam/mem/memtest"
)

// Linux starts a program under ptrace, without randomisation, and stops it before its first instruction. Its memory
// regions, registers and stack must equal those in the plan that this package makes.

// image is the address space that Linux made for a program.
type image struct {
	maps  string
	entry uint64
	sp    uint64
	brk   uint64 // address at which the heap begins
	stack []byte // bytes of the stack from sp on
	auxv  map[uint64]uint64
}

// startOnLinux starts a program and kills it at its first instruction.
func startOnLinux(t *testing.T, path string, argv, envp []string) image {
	t.Helper()
	runtime.LockOSThread() // ptrace belongs to a thread, and so does the personality
	defer runtime.UnlockOSThread()
	const noRandomise = 0x0040000
	old, _, _ := syscall.RawSyscall(linux.SYS_PERSONALITY, noRandomise, 0, 0)
	defer func() { _, _, _ = syscall.RawSyscall(linux.SYS_PERSONALITY, old, 0, 0) }()
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: envp, Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		t.Fatal(path, err)
	}
	defer func() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	}()
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(pid, &regs); err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	i := image{maps: string(maps), entry: regs.Rip, sp: regs.Rsp, stack: make([]byte, stackEnd(string(maps))-regs.Rsp)}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	const startBrk = 47 // number of the field start_brk in proc_pid_stat(5), counted from 1. Field 2 is in parentheses, and ends at the last ')'
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if _, err := fmt.Sscan(fields[startBrk-3], &i.brk); err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	if _, err := memory.ReadAt(i.stack, int64(i.sp)); err != nil {
		t.Fatal(err)
	}
	i.auxv = auxv(i.stack)
	return i
}

func stackEnd(maps string) (end uint64) {
	for line := range strings.Lines(maps) {
		if strings.Contains(line, "[stack]") {
			_, _ = fmt.Sscanf(line[strings.Index(line, "-")+1:], "%x", &end)
		}
	}
	return end
}

// auxv returns the auxiliary vector of an initial stack.
func auxv(stack []byte) map[uint64]uint64 {
	word := func(n int) uint64 { return binary.LittleEndian.Uint64(stack[n*8:]) }
	n := 1 + int(word(0)) + 1
	for ; word(n) != 0; n++ {
	}
	all := map[uint64]uint64{}
	for n++; word(n) != 0; n += 2 {
		all[word(n)] = word(n + 1)
	}
	return all
}

// pager reads a file of the host.
type pager struct{ *os.File }

func (p pager) ReadPage(index uint64, page []byte) error {
	clear(page)
	_, _ = p.ReadAt(page, int64(index)*mem.PageSize) // bytes that are missing are behind the end of the file, and stay zero
	return nil
}

func (p pager) WritePages(uint64, [][]byte, int64) error { return linux.EROFS }

// open returns an Opener over the host's files.
func open(t testing.TB, c *cache.Cache) exec.Opener {
	return func(path string) (exec.File, error) {
		f, err := os.Open(path)
		if err != nil {
			return exec.File{}, err.(*os.PathError).Err
		}
		t.Cleanup(func() { f.Close() })
		info, err := f.Stat()
		if err != nil {
			return exec.File{}, err
		}
		if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return exec.File{}, linux.EACCES
		}
		real, err := filepath.EvalSymlinks(path)
		return exec.File{Reader: f, Object: c.NewFile(pager{f}, info.Size(), mem.Label{Path: real})}, err
	}
}

// planFor makes the plan for the same program, with Linux's description of the machine, and applies it.
func planFor(t *testing.T, path string, argv, envp []string, linux image) (*exec.Plan, *mem.Map) {
	t.Helper()
	memory := memtest.NewMemory(16)
	opener := open(t, cache.New(memory, cache.Limits{}))
	program, err := exec.Resolve(path, argv, opener)
	if err != nil {
		t.Fatal(err)
	}
	const seed = 0x0102030405060708
	q := exec.Request{
		Path: path, Argv: program.Argv, Envp: envp, File: program.File, Open: opener,
		Random: func() uint64 { return seed }, StackLimit: stackLimit(t),
		Identity: exec.Identity{
			UID: uint32(os.Getuid()), EUID: uint32(os.Geteuid()), GID: uint32(os.Getgid()), EGID: uint32(os.Getegid()),
		},
		Machine: exec.Machine{
			HWCap: linux.auxv[16], HWCap2: linux.auxv[26], MinSignalStack: linux.auxv[51],
			RseqSize: linux.auxv[27], RseqAlign: linux.auxv[28],
		},
		VDSO: vdsoOf(linux.maps),
	}
	p, err := exec.Make(q)
	if err != nil {
		t.Fatal(err)
	}
	m := mem.New(mem.Config{
		Memory: memory, Tables: memtest.NewTables(memory), Account: &mem.Account{Total: 1 << 20}, Layout: p.Layout,
		Limits: mem.Limits{AS: mem.Infinite, Data: mem.Infinite, Stack: q.StackLimit},
	})
	if err := p.Apply(m); err != nil {
		t.Fatal(err)
	}
	return p, m
}

func stackLimit(t *testing.T) uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(linux.RLIMIT_STACK, &l); err != nil {
		t.Fatal(err)
	}
	return l.Cur
}

// vdsoOf returns a vDSO that is as large as the vDSO of Linux in maps.
func vdsoOf(maps string) (v exec.VDSO) {
	for line := range strings.Lines(maps) {
		var start, end uint64
		_, _ = fmt.Sscanf(line, "%x-%x", &start, &end)
		if pages := (end - start) / mem.PageSize; strings.Contains(line, "[vdso]") {
			v.CodePages = pages
		} else if strings.Contains(line, "[vvar") {
			v.DataPages += pages
		}
	}
	v.Code, v.Data = mem.NewFixed(mem.Label{Path: "[vdso]"}), mem.NewFixed(mem.Label{Path: "[vvar]"})
	return v
}

// lines returns the parts of /proc/PID/maps that must be equal on both sides: addresses, permissions, offsets and
// names. It leaves out the vDSO, whose data is in several regions on Linux.
func lines(maps string) string {
	var b strings.Builder
	for line := range strings.Lines(maps) {
		f := strings.Fields(line)
		name := ""
		if len(f) > 5 {
			name = f[5]
		}
		if strings.HasPrefix(name, "[v") {
			continue
		}
		fmt.Fprintln(&b, f[0], f[1], f[2], name)
	}
	return b.String()
}

// normal overwrites the bytes of a stack that differ from run to run: the random bytes to which AT_RANDOM points.
func normal(stack []byte, sp uint64) []byte {
	stack = bytes.Clone(stack)
	clear(stack[auxv(stack)[25]-sp:][:16])
	return stack
}

func TestPlanAsLinux(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/bin/true", "/bin/bash", "/sbin/ldconfig", "/lib64/ld-linux-x86-64.so.2", self} {
		real, err := filepath.EvalSymlinks(path) // resolves links, because /proc/PID/maps shows the resolved path
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{path}, {"name", "", "a longer argument", "x"}} {
			envp := []string{"HOME=/root", "EMPTY=", "A=b"}[:len(args)%3]
			linux := startOnLinux(t, real, args, envp)
			p, m := planFor(t, real, args, envp, linux)
			if p.Entry != linux.entry || p.StackPointer != linux.sp || p.Break != linux.brk {
				t.Errorf("%s: entry %x, stack %x, heap %x; on Linux %x, %x, %x", path, p.Entry, p.StackPointer, p.Break, linux.entry, linux.sp, linux.brk)
			}
			if a, b := lines(string(m.AppendMaps(nil))), lines(linux.maps); a != b {
				t.Errorf("%s: regions\n%son Linux\n%s", path, a, b)
			}
			if !bytes.Equal(normal(p.Stack, p.StackPointer), normal(linux.stack, linux.sp)) {
				t.Errorf("%s: the stack differs\n%x\n%x\nauxv %x\n     %x", path, p.Stack, linux.stack, auxv(p.Stack), linux.auxv)
			}
		}
	}
}
