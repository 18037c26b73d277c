// Package qtest is a machine made of QEMU's devices and an idle processor: the
// contract of drivers (loam/driver) over the qtest protocol (docs/devel/qtest.rst
// of QEMU), for tests. A driver that works here works with the device as QEMU has
// it, from an ordinary Go test, without a kernel.
//
// The processor halts at its first instruction, which stands where firmware would,
// so nothing has been set up. (QEMU's accelerator "qtest", which has no processor
// at all, is left out of Debian's QEMU.) Ports and registers are lines of text over a socket. The machine's memory
// is a file that both processes map, so rings and buffers are real shared memory.
// Messages of interrupts are written to that memory, where a goroutine looks for
// them; lines are reported by the I/O APIC's input, which QEMU intercepts.
//
// Once QEMU has ended all ports and registers read as ones, as those of a device
// do that was pulled out.
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

	"loam/driver"
)

// memorySize is that of the machine, in bytes.
const memorySize = 64 << 20

// Machine is a QEMU. It implements driver.Machine.
type Machine struct {
	*connection
	allocator
	dir     string // with its sockets
	memory  []byte // of the machine, from physical address 0
	command *exec.Cmd
	exited  <-chan struct{} // closed when the process has ended
	stopped sync.Once
	mayEnd  atomic.Bool // the test ends it, or waits for its end
	ended   sync.WaitGroup
	done    chan struct{} // closed by Stop: the goroutine that looks for messages ends
}

var _ driver.Machine = (*Machine)(nil)

// Start starts a QEMU, for as long as the test runs. kind is what -machine takes
// first ("q35", "microvm"); args are for devices.
func Start(t testing.TB, kind string, args ...string) *Machine {
	t.Helper()
	return startIn(t, kind, args, false)
}

// Boot is Start for a machine whose own firmware runs, and ends where it finds
// nothing to boot. If it begins again instead, QEMU ends.
func Boot(t testing.TB, kind string, args ...string) *Machine {
	t.Helper()
	return startIn(t, kind, args, true)
}

func startIn(t testing.TB, kind string, args []string, boot bool) *Machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "qtest") // a short name: socket paths are bounded
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

// checkRuns fails the test if QEMU has ended and nobody asked it to: the devices were
// gone from then on.
func (m *Machine) checkRuns(t testing.TB) {
	select {
	case <-m.exited:
		if !m.mayEnd.Load() {
			t.Errorf("QEMU has ended by itself: %v", m.command.ProcessState)
		}
	default:
	}
}

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
		l.Close() // nobody will connect
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

// halt is firmware that halts the processor where it starts, 16 bytes below the
// end: SDM volume 3, 10.1.4.
func halt() []byte {
	const size, start = 64 << 10, 64<<10 - 16
	b := make([]byte, size)
	copy(b[start:], []byte{0xfa, 0xf4, 0xeb, 0xfd}) // CLI; HLT; JMP to the HLT
	return b
}

const startBound = time.Minute // on a machine with much to do

// shareMemory makes the file that is the machine's memory, and maps it.
func shareMemory(path string) ([]byte, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(memorySize); err != nil {
		return nil, err
	}
	return syscall.Mmap(int(f.Fd()), 0, memorySize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

// Stop ends QEMU, as if the machine were switched off. It may be called more than
// once, and while drivers run. The memory stays mapped: they may look at it still.
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
