//go:build !race

package image

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/boot"
)

// A CPU that starts only after the kernel has stopped waiting for it halts, because the kernel runs without it. The
// test holds back the second of three CPUs through QEMU's debugger stub until the program runs on the other two. The
// kernel waits 10 seconds for a CPU.
func TestLateCPU(t *testing.T) {
	start, end := functionNamed(t, built(t), "loamStartCPU")
	vm := startHeld(t, boot.Config{Args: []string{"guest", "late"}}, 3)
	vm.resume(1, 3)
	vm.expect("ready\n")

	vm.resume(1, 2, 3)
	for tick := time.Tick(50 * time.Millisecond); ; <-tick {
		vm.stop()
		at := vm.instructionOf(2)
		vm.resume(1, 2, 3)
		if at >= start && at < end {
			break
		}
	}
	fmt.Fprint(vm.in, "\x03")
	vm.expect("interrupt\n")
	vm.expect("spread over 2\n")
	vm.stop()
	if at := vm.instructionOf(2); at < start || at >= end {
		t.Errorf("the CPU that came late went on to %#x", at)
	}
}

// functionNamed returns the address range of a function.
func functionNamed(t *testing.T, program []byte, name string) (start, end uint64) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == name {
			return s.Value, s.Value + s.Size
		}
	}
	t.Fatalf("there is no function %s", name)
	return 0, 0
}

// held is a machine whose CPUs run only when the test resumes them, through QEMU's debugger stub and GDB's remote
// serial protocol. CPUs are numbered from 1.
type held struct {
	t      *testing.T
	in     *os.File      // the machine's input
	out    *bufio.Reader // the machine's output
	stub   net.Conn
	answer *bufio.Reader
}

// startHeld starts a machine with all CPUs stopped. It is a microvm, whose firmware does not start the
// other CPUs.
func startHeld(t *testing.T, c boot.Config, cpus int) *held {
	t.Helper()
	qemu := findQEMU(t)
	dir := t.TempDir()
	words, err := c.Encode()
	config, socket := filepath.Join(dir, "config"), filepath.Join(dir, "stub")
	inRead, in, ierr := os.Pipe()
	out, outWrite, oerr := os.Pipe()
	if err := errors.Join(err, os.WriteFile(config, words, 0o644), ierr, oerr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*bootTime)
	cmd := exec.CommandContext(ctx, qemu, "-accel", "tcg", "-cpu", "max", "-display", "none",
		"-nodefaults", "-serial", "stdio", "-no-reboot", "-device", "isa-debug-exit",
		"-machine", "microvm", "-m", "64M", "-smp", fmt.Sprint(cpus), "-kernel", bootable(t), "-initrd", config,
		"-S", "-chardev", "socket,id=stub,server=on,wait=off,path="+socket, "-gdb", "chardev:stub")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inRead, outWrite, outWrite
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when this thread ends
	t.Cleanup(runtime.UnlockOSThread)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inRead.Close()
	outWrite.Close()
	t.Cleanup(func() { cancel(); cmd.Wait(); in.Close(); out.Close() })
	vm := &held{t: t, in: in, out: bufio.NewReader(out)}
	for tick := time.Tick(20 * time.Millisecond); vm.stub == nil; <-tick {
		if vm.stub, err = net.Dial("unix", socket); err != nil && ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { vm.stub.Close() })
	vm.stub.SetDeadline(time.Now().Add(2 * bootTime))
	vm.answer = bufio.NewReader(vm.stub)
	return vm
}

// expect reads a line of the machine's output. The test fails if the line is not want.
func (vm *held) expect(want string) {
	vm.t.Helper()
	if line, err := vm.out.ReadString('\n'); line != want {
		vm.t.Fatalf("the machine says %q, %v; not %q", line, err, want)
	}
}

// send sends a packet of the remote serial protocol: its data and a checksum.
func (vm *held) send(data string) {
	vm.t.Helper()
	var sum uint8
	for i := range len(data) {
		sum += data[i]
	}
	if _, err := fmt.Fprintf(vm.stub, "$%s#%02x", data, sum); err != nil {
		vm.t.Fatal(err)
	}
}

// receive returns the data of the next packet.
func (vm *held) receive() string {
	vm.t.Helper()
	_, err := vm.answer.ReadString('$') // acknowledgements ('+') precede the packet, which begins with '$'
	data, end := vm.answer.ReadString('#')
	_, sum := vm.answer.Discard(2)
	if err := errors.Join(err, end, sum); err != nil {
		vm.t.Fatal(err)
	}
	fmt.Fprint(vm.stub, "+")
	return strings.TrimSuffix(data, "#")
}

// resume lets the given CPUs run, and no others.
func (vm *held) resume(cpus ...int) {
	command := "vCont"
	for _, n := range cpus {
		command += fmt.Sprintf(";c:%d", n)
	}
	vm.send(command)
}

// stop stops all CPUs.
func (vm *held) stop() {
	vm.t.Helper()
	fmt.Fprint(vm.stub, "\x03")
	if why := vm.receive(); !strings.HasPrefix(why, "T") {
		vm.t.Fatalf("the machine does not stop: %q", why)
	}
}

// runTo lets the given CPUs run until one of them reaches an address, and returns the number of that CPU.
func (vm *held) runTo(at uint64, cpus ...int) int {
	vm.t.Helper()
	command := fmt.Sprintf("0,%x,1", at)
	vm.send("Z" + command)
	if got := vm.receive(); got != "OK" {
		vm.t.Fatalf("no breakpoint at %#x: %q", at, got)
	}
	vm.resume(cpus...)
	var cpu int
	why := vm.receive()
	if _, name, ok := strings.Cut(why, "thread:"); ok {
		_, err := fmt.Sscanf(name[strings.Index(name, ".")+1:], "%x", &cpu)
		if err != nil {
			vm.t.Fatalf("the machine stopped: %q", why)
		}
	}
	vm.send("z" + command)
	if got := vm.receive(); got != "OK" || cpu == 0 {
		vm.t.Fatalf("the machine stopped: %q, and then %q", why, got)
	}
	return cpu
}

// instructionOf returns the instruction pointer of a stopped CPU.
func (vm *held) instructionOf(cpu int) uint64 {
	vm.t.Helper()
	const register = 16 // index of RIP in the answer to "p"
	vm.send(fmt.Sprintf("Hg%d", cpu))
	if got := vm.receive(); got != "OK" {
		vm.t.Fatalf("there is no CPU %d: %q", cpu, got)
	}
	vm.send("g")
	all, err := hex.DecodeString(vm.receive())
	if err != nil || len(all) < 8*(register+1) {
		vm.t.Fatalf("registers: %x, %v", all, err)
	}
	return binary.LittleEndian.Uint64(all[8*register:])
}
