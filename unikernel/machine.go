package unikernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"loam/boot"
	"loam/unikernel/image"
)

// On platform Machine, the guest is the kernel of a virtual machine in QEMU. QEMU is a child of the loam command and
// ends with it, kill -9 included. It leaves no files behind: image and configuration are memory files that it inherits,
// and its output arrives through pipes.
//
// The program's standard streams use package channel. The output of the Go runtime and the kernel, the exit status, the
// time and signals use I/O ports and the serial port: see kernel/control.go.
//
// Reading order: machine.go, monitor.go; probe.go for finding a usable QEMU.

// MachineConfig describes a virtual machine.
type MachineConfig struct {
	Memory uint64 // memory in bytes; 0: DefaultMemory
	CPUs   int    // number of CPUs; 0: 1
	Model  string // machine type for QEMU's -machine; empty: q35
	// Card is the model of the network card: CardVirtio, CardE1000e or CardE1000; empty: CardVirtio.
	Card string
	// Emulator describes QEMU, and should be the result of FindEmulator. The zero value uses TCG and QEMU's own firmware.
	Emulator Emulator
	// Monitor is the path of a socket for QEMU's machine protocol (QMP); empty: none.
	Monitor string
	// KeepRoot keeps QEMU running as root if this process is root. Without it, QEMU runs as sandbox.Nobody in that case.
	KeepRoot bool
}

// Models of network cards, with QEMU's names for those of Intel.
const (
	CardVirtio = "virtio"
	CardE1000e = "e1000e"
	CardE1000  = "e1000"
)

// The default memory and the limits of a machine. Memory is in bytes.
const (
	DefaultMemory = 256 << 20
	minMemory     = 32 << 20
	maxMemory     = 1 << 40
	maxCPUs       = 64
	maxDisks      = 16
)

// qemu is the name of the monitor program.
const qemu = "qemu-system-x86_64"

// check sets default values, and returns an error if QEMU cannot provide the machine.
func (m *MachineConfig) check() error {
	if m.Memory == 0 {
		m.Memory = DefaultMemory
	}
	if m.CPUs == 0 {
		m.CPUs = 1
	}
	m.Model, m.Card = cmp.Or(m.Model, "q35"), cmp.Or(m.Card, CardVirtio)
	switch _, err := exec.LookPath(qemu); {
	case err != nil:
		return errorf("install QEMU (Debian: apt-get install qemu-system-x86), or use --platform process", "there is no %s", qemu)
	case m.Memory < minMemory || m.Memory > maxMemory:
		return errorf(fmt.Sprintf("give it from %d MiB to %d GiB", minMemory>>20, maxMemory>>30), "a machine cannot have %d bytes of memory", m.Memory)
	case m.CPUs < 0 || m.CPUs > maxCPUs:
		return errorf(fmt.Sprintf("give it 1 to %d", maxCPUs), "a machine cannot have %d CPUs", m.CPUs)
	case m.Model != "q35" && m.Model != "pc" && m.Model != "microvm":
		return errorf("use q35, pc or microvm", "there is no machine %q", m.Model)
	case m.Card != CardVirtio && m.Card != CardE1000e && m.Card != CardE1000:
		return errorf("use virtio, e1000e or e1000", "there is no network card %q", m.Card)
	case m.Card != CardVirtio && m.Model == "microvm":
		return errorf("use --machine q35", "microvm has no bus for a network card %s", m.Card)
	}
	return nil
}

// launchMachine boots program and waits for its end.
func launchMachine(program string, o *Options, n *network) (status int, err error) {
	data, err := o.Machine.fill(program, n.readArchives)
	if err != nil {
		return 0, err
	}
	n.config.Streams, n.config.Ordered = standardStreams()
	for _, i := range n.disks {
		n.config.Disks = append(n.config.Disks, i.describe())
	}
	if n.config.Terminal, err = o.wantsTerminal(); err != nil {
		return 0, err
	}
	words, err := boot.Config{Args: append([]string{program}, o.Args...), Env: environment(o.base(), o.Env, n.config)}.Encode()
	if err != nil {
		return 0, errorf("leave it out", "%v", err)
	}
	o.Machine.KeepRoot = o.KeepRoot
	m := newMonitor(&o.Machine, n)
	defer m.close()
	if err := errors.Join(m.addChannel(o.Machine.Model), m.load(data, words), m.addQMP(o.Machine.Monitor)); err != nil {
		return 0, err
	}
	m.addDisks(o.Machine.Model, n.disks)
	n.disks = nil // m.close closes the files of the disks
	m.addShared(o.Machine.Model, n.shared)
	n.shared = nil
	status, err = m.run(context.Background(), streams{
		in: os.Stdin, out: os.Stdout, errors: os.Stderr, results: n.results, together: n.config.Ordered, signals: true,
		keys: terminalOf(os.Stdin, os.Stdout, os.Stderr), started: o.started,
	})
	if err != nil {
		return 0, errorf("try --platform process", "%v", err)
	}
	return status, nil
}

// prepared reads a program, makes it bootable, and appends files.
func prepared(program string, files []byte) ([]byte, error) {
	data, err := os.ReadFile(program)
	if err == nil {
		err = image.Prepare(data)
	}
	if err == nil && len(files) > 0 {
		data, err = image.AddFiles(data, files)
	}
	if errors.Is(err, image.ErrTooLarge) {
		err = errorf("share a large folder without a copy (-v HOST:GUEST:rw), or put its files on a disk (--disk)", "%v", err)
	}
	return data, err
}

// fill returns the image that the machine boots: the bootable program and the archives. It returns an error
// if the image does not fit into its memory.
func (m *MachineConfig) fill(program string, archives func() ([]byte, error)) ([]byte, error) {
	files, err := archives()
	if err != nil {
		return nil, err
	}
	data, err := prepared(program, files)
	if err != nil {
		return nil, err
	}
	const spare = 8 << 20 // number of bytes that the firmware needs, and the kernel until it has read the memory map
	if need := image.End(data) + spare; need > m.Memory {
		return nil, errorf(fmt.Sprintf("give it more (-m %dM)", (need+minMemory)>>20),
			"the program and its files do not fit into %d MiB of memory", m.Memory>>20)
	}
	return data, nil
}

// standardStreams describes this process's standard streams for guest.Config.
func standardStreams() (modes [3]uint32, ordered bool) {
	for fd := range modes {
		var st syscall.Stat_t
		if err := syscall.Fstat(fd, &st); err == nil {
			modes[fd] = st.Mode
		}
	}
	ordered, _ = sameFile(os.Stdout, os.Stderr)
	return modes, ordered
}
