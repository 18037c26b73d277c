// Package qtest provides a machine for tests that consists of QEMU's devices and an idle processor. It implements the
// interface for drivers (loam/driver) with the qtest protocol (QEMU's docs/devel/qtest.rst). So an ordinary Go test,
// without a kernel, shows that a driver works with QEMU's implementation of a device.
//
// The machine has a small program in place of firmware, which halts the processor at the first instruction. So no
// device is configured. (QEMU's accelerator "qtest", which has no processor, is not in Debian's QEMU.) Accesses to
// ports and registers are lines of text on a socket. The machine's memory is a file that QEMU and the test both map, so
// rings and buffers are real shared memory. Devices write message-signalled interrupts to that memory, and a goroutine
// polls for them. Interrupt lines are inputs of the I/O APIC; QEMU intercepts them and reports their changes.
//
// After QEMU has exited, all ports and registers read as all ones, as they do after a device was removed.
package qtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/driver"
)

// memorySize is the size of the machine's memory, in bytes.
const memorySize = 64 << 20

// Machine is a QEMU process. It implements driver.Machine.
type Machine struct {
	*connection
	allocator
	dir     string // temporary directory with the sockets and the memory file
	memory  []byte // the machine's memory, from physical address 0
	command *exec.Cmd
	exited  <-chan struct{} // closed when the process has exited
	stopped sync.Once
	mayEnd  atomic.Bool // QEMU may exit: the test stops it, or waits for its exit
	ended   sync.WaitGroup
	done    chan struct{} // closed by Stop; ends lookForMessages
}

var _ driver.Machine = (*Machine)(nil)

// Start starts QEMU, and stops it at the end of the test. kind is QEMU's machine type, such as "q35" or "microvm"; args
// are further arguments of QEMU, which add devices. The test fails if QEMU cannot be started.
func Start(t testing.TB, kind string, args ...string) *Machine {
	t.Helper()
	return startIn(t, kind, args, false)
}

// Boot is like Start, but the machine runs its normal firmware, which stops when it finds no disk to boot from. If the
// firmware resets the machine, QEMU exits.
func Boot(t testing.TB, kind string, args ...string) *Machine {
	t.Helper()
	return startIn(t, kind, args, true)
}

// startIn starts QEMU and registers the cleanup of the test. boot selects the machine's normal firmware.
func startIn(t testing.TB, kind string, args []string, boot bool) *Machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "qtest") // a short path, because the length of socket paths is limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	firmware := filepath.Join(dir, "firmware")
	if err := os.WriteFile(firmware, halt(), 0o600); err != nil {
		t.Fatal(err)
	}
	if boot {
		args = append([]string{"-no-reboot"}, args...)
	} else {
		args = append([]string{"-bios", firmware}, args...)
	}
	m, err := start(dir, kind, args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.checkRuns(t)
		m.Stop()
	})
	return m
}

// checkRuns fails the test if QEMU has exited unexpectedly: the test then had no devices.
func (m *Machine) checkRuns(t testing.TB) {
	select {
	case <-m.exited:
		if !m.mayEnd.Load() {
			t.Errorf("QEMU has ended by itself: %v", m.command.ProcessState)
		}
	default:
	}
}

// start creates the shared memory and the sockets in dir, starts QEMU and waits until it has connected.
func start(dir, kind string, args []string) (*Machine, error) {
	memory, err := shareMemory(filepath.Join(dir, "memory"))
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	m := &Machine{dir: dir, memory: memory, done: make(chan struct{}), allocator: newAllocator(memory)}
	m.command = exec.Command("qemu-system-x86_64", append([]string{
		"-machine", kind + ",accel=tcg,memory-backend=ram",
		"-object", fmt.Sprintf("memory-backend-file,id=ram,size=%d,share=on,mem-path=%s", memorySize, filepath.Join(dir, "memory")),
		"-m", fmt.Sprint(memorySize >> 20), "-nodefaults", "-display", "none",
		"-qtest", "unix:" + socket, "-qtest-log", "none",
		"-qmp", "unix:" + filepath.Join(dir, "monitor") + ",server=on,wait=off",
	}, args...)...)
	m.command.Stderr = os.Stderr
	m.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.command.Start(); err != nil {
		return nil, err
	}
	exited := make(chan struct{}) // closed by the goroutine below
	go func() {
		m.command.Wait()
		close(exited)
		l.Close() // makes Accept return if QEMU has exited before it has connected
	}()
	m.exited = exited
	l.(*net.UnixListener).SetDeadline(time.Now().Add(startBound))
	c, err := l.Accept()
	if err != nil {
		m.command.Process.Kill()
		<-exited
		return nil, fmt.Errorf("qtest: QEMU did not connect (%w), and ended: %v", err, m.command.ProcessState)
	}
	m.connection = newConnection(c)
	m.ended.Go(m.connection.loop)
	m.ended.Go(m.lookForMessages)
	if _, ok := m.ask("irq_intercept_in ioapic"); !ok {
		m.Stop()
		return nil, errors.New("qtest: QEMU does not let its lines be intercepted")
	}
	return m, nil
}

// halt returns a firmware image that halts the processor at its first instruction, which is 16 bytes before the end of
// the image (SDM volume 3, 10.1.4).
func halt() []byte {
	const size, start = 64 << 10, 64<<10 - 16
	b := make([]byte, size)
	copy(b[start:], []byte{0xfa, 0xf4, 0xeb, 0xfd}) // CLI; HLT; JMP to the HLT
	return b
}

const startBound = time.Minute // timeout for the start of QEMU; long enough on a busy machine

// shareMemory creates and maps the file with the machine's memory.
func shareMemory(path string) ([]byte, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(memorySize); err != nil {
		return nil, err
	}
	return syscall.Mmap(int(f.Fd()), 0, memorySize, linux.PROT_READ|linux.PROT_WRITE, linux.MAP_SHARED)
}

// Stop ends QEMU, as a power failure would. It may be called more than once, and while drivers run. The memory
// stays mapped, since drivers may still access it.
func (m *Machine) Stop() {
	m.mayEnd.Store(true)
	m.stopped.Do(func() {
		m.command.Process.Kill()
		<-m.exited
		close(m.done)
		m.connection.close()
		m.ended.Wait()
	})
}
