package unikernel

import (
	"bytes"
	"context"
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
	"time"

	"loam/boot"
	"loam/unikernel/channel"
)

// monitor is a QEMU: what it is started with, and our ends of what connects us.
type monitor struct {
	args  []string
	files []*os.File // that it inherits, from descriptor 3 on
	ours  []*os.File // the other ends, which close closes

	output, errors, control, time *os.File // where the ports of package boot lead
	signals                       *os.File
	channel                       *os.File // package channel; nil: the program has ports only

	said      bytes.Buffer // what QEMU complained of
	complaint io.Writer    // where it complains; said, if not set otherwise
}

// sandbox has QEMU refuse itself what no machine of ours needs: to start programs, to
// become another user, and to change its priority. Who breaks out of a machine is in QEMU.
const sandbox = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

// newMonitor prepares a QEMU for a machine on a network, which hands its files over;
// nil: on none.
func newMonitor(c *MachineConfig, n *network) *monitor {
	m := &monitor{}
	m.complaint = &m.said
	cpu := "max"
	if c.Emulator.Accelerator == KVM {
		cpu = "host"
	}
	model := c.Model
	if model == "q35" {
		model += ",sata=off" // its disks are virtio's; firmware would look for others at each start
	}
	m.args = []string{
		"-machine", model, "-accel", c.Emulator.Accelerator.String(), "-cpu", cpu,
		"-m", strconv.FormatUint(c.Memory>>20, 10) + "M", "-smp", strconv.Itoa(c.CPUs),
		"-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-device", "isa-debug-exit",
	}
	if c.Emulator.Sandbox {
		m.args = append(m.args, "-sandbox", sandbox)
	}
	if n != nil && len(n.files) > 0 {
		m.files, n.files = n.files, nil
		m.addCard(c.Model, n.cable)
	}
	if c.Emulator.Accelerator == KVM { // an emulator's processor has its random numbers from where the device has them
		m.args = append(m.args, "-device", virtio("rng", c.Model))
	}
	if c.Model != "microvm" && c.Emulator.Firmware != "" {
		m.args = append(m.args, "-bios", c.Emulator.Firmware)
	}
	if c.Model == "microvm" {
		m.args = append(m.args, "-global", "virtio-mmio.force-legacy=false") // its devices speak virtio 1.0 then
	}
	if c.Monitor != "" {
		m.args = append(m.args, "-qmp", "unix:"+c.Monitor+",server=on,wait=off")
	}
	return m
}

// load gives QEMU the program, its configuration, and what else connects them to us.
func (m *monitor) load(program, config []byte) error {
	kernel, err1 := m.memory("image", program)
	words, err2 := m.memory("config", config)
	var err3, err4, err5, err6, err7 error
	m.output, err3 = m.port("output", boot.PortOutput)
	m.errors, err4 = m.port("errors", boot.PortErrors)
	m.control, err5 = m.port("control", boot.PortControl)
	m.signals, err6 = m.signalPort()
	m.time, err7 = m.port("time", boot.PortTime)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return errorf("close some files or raise the limit (ulimit -n)", "%v", err)
	}
	m.args = append(m.args, "-kernel", kernel, "-initrd", words)
	return nil
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

// addCard has QEMU make a network card whose cable are the descriptors from 3 on.
func (m *monitor) addCard(model string, c cable) {
	card := virtio("net", model) + ",netdev=cable"
	if model != "microvm" {
		card += ",romfile=" // nobody boots from the network: a fifth of the time until a program begins
	}
	if !c.tap {
		m.args = append(m.args, "-netdev", "stream,id=cable,server=off,addr.type=fd,addr.str=3", "-device", card)
		return
	}
	card += fmt.Sprintf(",mac=%v,host_mtu=%d", c.mac, c.mtu)
	tap := "tap,id=cable,vhost=off,fd=3"
	if c.queues > 1 {
		var fds []string
		for i := range c.queues {
			fds = append(fds, strconv.Itoa(firstGuestFD+i))
		}
		tap = "tap,id=cable,vhost=off,fds=" + strings.Join(fds, ":")
		card += ",mq=on"
		if model != "microvm" {
			card += fmt.Sprintf(",vectors=%d", 2*c.queues+2) // one each, and those of changes and of control
		}
	}
	m.args = append(m.args, "-netdev", tap, "-device", card)
}

// virtio is the name of a virtio device in a machine.
func virtio(kind, model string) string {
	if model == "microvm" {
		return "virtio-" + kind + "-device"
	}
	return "virtio-" + kind + "-pci"
}

// addChannel has QEMU make a console, for package channel.
func (m *monitor) addChannel(model string) (err error) {
	m.channel, err = m.socket("channel", "-device", virtio("serial", model), "-device", "virtconsole,chardev=channel")
	return err
}

// signalPort has QEMU make the serial port, and returns where to write signals to.
func (m *monitor) signalPort() (*os.File, error) {
	return m.socket("signals", "-serial", "chardev:signals")
}

// socket has QEMU make a character device of a socket, and what uses it, and returns
// the other end.
func (m *monitor) socket(name string, user ...string) (*os.File, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), name), os.NewFile(uintptr(pair[1]), name)
	m.ours = append(m.ours, ours)
	m.inherit(theirs)
	m.args = append(append(m.args, "-chardev", fmt.Sprintf("socket,id=%s,fd=%d", name, 2+len(m.files))), user...)
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

// streams are the program's standard streams, and whether it has our signals.
type streams struct {
	in          io.Reader
	out, errors io.Writer
	results     *os.File // nil: none are taken
	together    bool     // out and errors are the same place
	signals     bool
}

// run runs QEMU to its end, or that of ctx, and returns the program's exit status.
func (m *monitor) run(ctx context.Context, s streams) (status int, err error) {
	cmd := exec.CommandContext(ctx, qemu, m.args...)
	cmd.Stdout, cmd.Stderr = m.complaint, m.complaint
	cmd.ExtraFiles = m.files
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}

	incoming := make(chan os.Signal, 16) // sent by package signal, received by sendSignals; full: a signal is lost, as signals are
	if s.signals {
		signal.Notify(incoming, forwarded...)
		defer signal.Stop(incoming)
	}
	runtime.LockOSThread() // as in launch
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("%s cannot be started: %w", qemu, err)
	}
	m.started()
	done := make(chan struct{})
	go sendSignals(m.signals, incoming, done)
	var last lastByte
	var copying sync.WaitGroup
	copying.Go(func() { io.Copy(s.out, m.output) })
	kernel := newPort(m.errors, s.errors)
	copying.Go(kernel.copy)
	copying.Go(func() { io.Copy(&last, m.control) })
	copying.Go(func() { answerTime(m.signals, m.time) })
	if m.channel != nil {
		terminals := &terminals{}
		defer terminals.restore()
		c := channel.Command{
			In: s.in, Out: s.out, Errors: s.errors, Together: s.together,
			Before: kernel.take, Terminal: terminals.control, Keys: new(keyboard),
		}
		if s.results != nil {
			c.Results = s.results
		}
		copying.Go(func() { c.Serve(m.channel) })
	}
	err = cmd.Wait()
	close(done)
	copying.Wait()
	if last.there {
		return int(last.value), nil
	}
	if err == nil {
		err = errors.New("it ended")
	}
	return 0, fmt.Errorf("the machine did not say how the program ended: %w: %s", err, strings.TrimSpace(m.said.String()))
}

// lastByte keeps the last byte that is written to it: a kernel that writes for ever is
// not remembered.
type lastByte struct {
	value byte
	there bool
}

// Write implements io.Writer.
func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		l.value, l.there = p[len(p)-1], true
	}
	return len(p), nil
}

// answerTime tells the kernel what time it is whenever it asks, until it has ended.
func answerTime(to io.Writer, questions io.Reader) {
	var question [1]byte
	for {
		if _, err := questions.Read(question[:]); err != nil {
			return
		}
		to.Write(boot.AppendTime(nil, time.Now().UnixNano())) // an error means that it has ended
	}
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
