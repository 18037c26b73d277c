package unikernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

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
//
// Reading order: machine.go, monitor.go; probe.go for what QEMU is to be had.

// MachineConfig is what a virtual machine is made of.
type MachineConfig struct {
	Memory uint64 // in bytes; 0: DefaultMemory
	CPUs   int    // 0: one
	Model  string // of QEMU's -machine; empty: q35
	// Accelerator should be that of FindEmulator.
	Accelerator Accelerator
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
	m := newMonitor(&o.Machine, n)
	defer m.close()
	if err := errors.Join(m.addChannel(o.Machine.Model), m.load(data, words)); err != nil {
		return 0, err
	}
	together, _ := sameFile(os.Stdout, os.Stderr)
	status, err = m.run(context.Background(), streams{
		in: os.Stdin, out: os.Stdout, errors: os.Stderr, together: together, signals: true,
	})
	if err != nil {
		return 0, errorf("try --platform process", "%v", err)
	}
	return status, nil
}
