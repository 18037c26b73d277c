package unikernel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"loam/boot"
	"loam/unikernel/image"
)

// A guest of platform machine is the kernel of a virtual machine, which QEMU makes.
// QEMU is a child of the loam command and ends with it, kill -9 included. Nothing of
// it is left anywhere: image and configuration are memory that it inherits, and what
// it says comes by pipes.
//
// What the program writes, its exit status and the signals that it is sent go by
// three ports and the serial port: see kernel/control.go.

// MachineConfig is what a virtual machine is made of.
type MachineConfig struct {
	Memory uint64 // in bytes; 0: DefaultMemory
	CPUs   int    // 0: one
	Model  string // of QEMU's -machine; empty: q35
	// Monitor is where QEMU makes a socket for its machine protocol (QMP); empty: it
	// makes none.
	Monitor string
}

// What a machine may have.
const (
	DefaultMemory = 256 << 20
	minMemory     = 32 << 20
	maxMemory     = 1 << 40
	maxCPUs       = 64
)

// qemu is the monitor.
const qemu = "qemu-system-x86_64"

// check refuses what cannot be.
func (m *MachineConfig) check() error {
	if m.Memory == 0 {
		m.Memory = DefaultMemory
	}
	if m.CPUs == 0 {
		m.CPUs = 1
	}
	if m.Model == "" {
		m.Model = "q35"
	}
	switch _, err := exec.LookPath(qemu); {
	case err != nil:
		return errorf("install QEMU (Debian: apt-get install qemu-system-x86), or use --platform process", "there is no %s", qemu)
	case m.Memory < minMemory || m.Memory > maxMemory:
		return errorf(fmt.Sprintf("give it from %d MiB to %d GiB", minMemory>>20, maxMemory>>30), "a machine cannot have %d bytes of memory", m.Memory)
	case m.CPUs < 0 || m.CPUs > maxCPUs:
		return errorf(fmt.Sprintf("give it 1 to %d", maxCPUs), "a machine cannot have %d CPUs", m.CPUs)
	case m.Model != "q35" && m.Model != "pc" && m.Model != "microvm":
		return errorf("use q35, pc or microvm", "there is no machine %q", m.Model)
	}
	return nil
}

// monitor is a QEMU that is being prepared.
type monitor struct {
	args  []string
	files []*os.File // that it inherits, from descriptor 3 on
	ours  []*os.File // the other ends
}

// inherit gives QEMU a file, and returns the name under which it can be opened there.
func (m *monitor) inherit(f *os.File) string {
	m.files = append(m.files, f)
	return "/dev/fd/" + strconv.Itoa(2+len(m.files))
}

// memory gives QEMU a file of memory.
func (m *monitor) memory(name string, data []byte) (string, error) {
	f, err := memoryFile(name)
	if err != nil {
		return "", err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return "", err
	}
	return m.inherit(f), nil
}

// port has QEMU make a port, and returns where what is written to it arrives.
func (m *monitor) port(name string, number int) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	m.ours = append(m.ours, r)
	m.args = append(m.args,
		"-chardev", "file,id="+name+",path="+m.inherit(w),
		"-device", fmt.Sprintf("isa-debugcon,iobase=%#x,chardev=%s", number, name))
	return r, nil
}

// addCard has QEMU make a network card whose cable is descriptor 3.
func (m *monitor) addCard(model string) {
	card := "virtio-net-pci"
	if model == "microvm" {
		card = "virtio-net-device"
		m.args = append(m.args, "-global", "virtio-mmio.force-legacy=false") // it speaks virtio 1.0 then
	}
	m.args = append(m.args,
		"-netdev", "stream,id=cable,server=off,addr.type=fd,addr.str=3",
		"-device", card+",netdev=cable")
}

// signals has QEMU make the serial port, and returns where to write signals to.
func (m *monitor) signals() (*os.File, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "signals"), os.NewFile(uintptr(pair[1]), "signals")
	m.ours = append(m.ours, ours)
	m.inherit(theirs)
	m.args = append(m.args, "-chardev", fmt.Sprintf("socket,id=signals,fd=%d", 2+len(m.files)), "-serial", "chardev:signals")
	return ours, nil
}

// started closes our copies of what QEMU has inherited.
func (m *monitor) started() {
	for _, f := range m.files {
		f.Close()
	}
	m.files = nil
}

func (m *monitor) close() {
	m.started()
	for _, f := range m.ours {
		f.Close()
	}
}

// launchMachine boots program and waits for its end.
func launchMachine(program string, o *Options, n *network) (status int, err error) {
	data, err := os.ReadFile(program)
	if err == nil {
		err = image.Prepare(data)
	}
	if err != nil {
		return 0, err
	}
	words, err := boot.Config{Args: append([]string{program}, o.Args...), Env: environment(o.Env, n.config)}.Encode()
	if err != nil {
		return 0, errorf("leave it out", "%v", err)
	}
	m := &monitor{files: n.files} // its cable, if it has one, is the first
	n.files = nil
	defer m.close()
	m.args = []string{
		"-machine", o.Machine.Model, "-accel", "tcg", "-cpu", "max",
		"-m", strconv.FormatUint(o.Machine.Memory>>20, 10) + "M", "-smp", strconv.Itoa(o.Machine.CPUs),
		"-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-device", "isa-debug-exit",
	}
	if len(m.files) > 0 {
		m.addCard(o.Machine.Model)
	}
	if o.Machine.Monitor != "" {
		m.args = append(m.args, "-qmp", "unix:"+o.Machine.Monitor+",server=on,wait=off")
	}
	kernel, err1 := m.memory("image", data)
	config, err2 := m.memory("config", words)
	output, err3 := m.port("output", boot.PortOutput)
	complaints, err4 := m.port("errors", boot.PortErrors)
	control, err5 := m.port("control", boot.PortControl)
	signals, err6 := m.signals()
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return 0, errorf("close some files or raise the limit (ulimit -n)", "%v", err)
	}
	m.args = append(m.args, "-kernel", kernel, "-initrd", config)
	return m.run(output, complaints, control, signals)
}

// run runs QEMU to its end.
func (m *monitor) run(output, complaints, control, signals *os.File) (status int, err error) {
	cmd := exec.Command(qemu, m.args...)
	var complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &complaint, &complaint
	cmd.ExtraFiles = m.files
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}

	incoming := make(chan os.Signal, 16) // sent by package signal, received by sendSignals; full: a signal is lost, as signals are
	signal.Notify(incoming, forwarded...)
	defer signal.Stop(incoming)
	runtime.LockOSThread() // as in launch
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, errorf("try again", "%s cannot be started: %v", qemu, err)
	}
	m.started()
	done := make(chan struct{})
	go sendSignals(signals, incoming, done)
	var last []byte
	var copying sync.WaitGroup
	copying.Go(func() { io.Copy(os.Stdout, output) })
	copying.Go(func() { io.Copy(os.Stderr, complaints) })
	copying.Go(func() { last, _ = io.ReadAll(control) })
	err = cmd.Wait()
	close(done)
	copying.Wait()
	if len(last) > 0 {
		return int(last[len(last)-1]), nil
	}
	if err == nil {
		err = errors.New("it ended")
	}
	why := strings.TrimSpace(complaint.String())
	return 0, errorf("try --platform process", "the machine did not say how the program ended: %v: %s", err, why)
}

// sendSignals tells the program of signals until done is closed.
func sendSignals(to *os.File, incoming <-chan os.Signal, done <-chan struct{}) {
	for {
		select {
		case s := <-incoming:
			to.Write([]byte{byte(s.(syscall.Signal))}) // an error means that it has ended
		case <-done:
			return
		}
	}
}
