package unikernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"loam/boot"
	"loam/unikernel/channel"
)

// monitor is a QEMU process: its arguments, and this process's ends of the connections to it.
type monitor struct {
	// args are QEMU's arguments.
	args  []string
	user  *syscall.Credential // user ID that QEMU runs with; nil: this process's
	files []*os.File          // files that QEMU inherits, numbered from 3
	ours  []*os.File          // this process's ends of connections to QEMU; close closes them

	output, errors, control, time *os.File // read ends of pipes for the output ports that package boot defines
	signals                       *os.File
	channel                       *os.File // connection for the program's standard streams (package channel); nil: the streams use I/O ports of the machine

	said      complaints // beginning of QEMU's standard error
	complaint io.Writer  // writer for QEMU's standard error; &said unless set otherwise
}

// qemuSandbox is the value of QEMU's -sandbox. QEMU denies itself what Loam's machines do not need: starting programs,
// changing its user, and changing its priority. Code that breaks out of a machine runs in QEMU.
const qemuSandbox = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

// newMonitor prepares a QEMU process for a machine. n is its network, which passes its files to QEMU; nil: no network.
func newMonitor(c *MachineConfig, n *network) *monitor {
	m := &monitor{user: unprivileged(c.KeepRoot || c.Emulator.RootOnly)}
	m.complaint = &m.said
	cpu := "max"
	if c.Emulator.Accelerator == KVM {
		cpu = "host"
	}
	model := c.Model
	if model == "q35" {
		// Loam's disks are virtio by default, and firmware would search the SATA controller at each start
		model += ",sata=off"
	}
	m.args = []string{
		"-machine", model, "-accel", c.Emulator.Accelerator.String(), "-cpu", cpu,
		"-m", strconv.FormatUint(c.Memory>>20, 10) + "M", "-smp", strconv.Itoa(c.CPUs),
		"-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-device", "isa-debug-exit",
	}
	if c.Emulator.Sandbox {
		m.args = append(m.args, "-sandbox", qemuSandbox)
	}
	if n != nil && len(n.files) > 0 {
		m.files, n.files = n.files, nil
		m.addCard(c, n.cable)
	}
	if c.Emulator.Accelerator == KVM { // with TCG, the processor's random numbers have the same source as the device's
		m.args = append(m.args, "-device", virtio("rng", c.Model))
	}
	// The fast firmware connects no interrupt lines, and e1000 has nothing else.
	if c.Model != "microvm" && c.Emulator.Firmware != "" && c.Card != CardE1000 {
		m.args = append(m.args, "-bios", c.Emulator.Firmware)
	}
	if c.Model == "microvm" {
		m.args = append(m.args, "-global", "virtio-mmio.force-legacy=false") // with this option, MMIO devices implement virtio 1.0
	}
	return m
}

// load passes the program and its configuration to QEMU, and creates the ports that connect the machine to this process.
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

// inherit makes QEMU inherit a file, and returns a path under which QEMU can open it.
func (m *monitor) inherit(f *os.File) string {
	m.files = append(m.files, f)
	return "/dev/fd/" + strconv.Itoa(2+len(m.files))
}

// memory creates a memory file with data for QEMU, and returns its path there.
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

// port adds an output port to the machine, and returns the read end of a pipe with the port's output.
func (m *monitor) port(name string, number int) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	m.ours = append(m.ours, r)
	if m.user != nil { // QEMU opens the pipe by its name in /dev/fd, for which Linux checks the owner of the file
		if err := w.Chown(int(m.user.Uid), int(m.user.Gid)); err != nil {
			return nil, err
		}
	}
	m.args = append(m.args,
		"-chardev", "file,id="+name+",path="+m.inherit(w),
		"-device", fmt.Sprintf("isa-debugcon,iobase=%#x,chardev=%s", number, name))
	return r, nil
}

// addCard adds a network card that is connected to the inherited descriptors from 3 on.
func (m *monitor) addCard(config *MachineConfig, c cable) {
	model := config.Model
	card := virtio("net", model)
	if config.Card == CardE1000e || config.Card == CardE1000 {
		card = config.Card
	}
	card += ",netdev=cable"
	if model != "microvm" {
		card += ",romfile=" // no boot from the network: loading its ROM takes a fifth of the start time
	}
	if !c.tap {
		m.args = append(m.args, "-netdev", "stream,id=cable,server=off,addr.type=fd,addr.str=3", "-device", card)
		return
	}
	card += fmt.Sprintf(",mac=%v", c.mac)
	if cmp.Or(config.Card, CardVirtio) == CardVirtio {
		card += fmt.Sprintf(",host_mtu=%d", c.mtu)
	}
	tap := "tap,id=cable,vhost=off,fd=3"
	if c.queues > 1 {
		var fds []string
		for i := range c.queues {
			fds = append(fds, strconv.Itoa(firstGuestFD+i))
		}
		tap = "tap,id=cable,vhost=off,fds=" + strings.Join(fds, ":")
		card += ",mq=on"
		if model != "microvm" {
			// The number of interrupt vectors: two for each queue pair, one for configuration changes, one for the control
			// queue.
			card += fmt.Sprintf(",vectors=%d", 2*c.queues+2)
		}
	}
	m.args = append(m.args, "-netdev", tap, "-device", card)
}

// virtio returns QEMU's name for a virtio device in a machine model.
func virtio(kind, model string) string {
	if model == "microvm" {
		return "virtio-" + kind + "-device"
	}
	return "virtio-" + kind + "-pci"
}

// console returns the options for a console that is connected to a character device. Its virtio device has one port. By default, QEMU gives
// the device 31 ports with 64 queues. Once the driver has started the device, QEMU's main loop polls one descriptor for each queue at each
// event of any device. On PCI, the device has an interrupt vector for each queue of the port, and one for configuration changes. By
// default, it has two vectors, so the queues share one, and a goroutine has to ask both.
func console(model, character string) []string {
	id := character + "-console"
	device := virtio("serial", model) + ",max_ports=1,id=" + id
	if model != "microvm" {
		device += ",vectors=3"
	}
	return []string{"-device", device, "-device", "virtconsole,bus=" + id + ".0,chardev=" + character}
}

// addChannel adds a console for package channel.
func (m *monitor) addChannel(model string) (err error) {
	m.channel, err = m.socket("channel", console(model, "channel")...)
	return err
}

// addConsole adds a console whose other end is a socket, which QEMU inherits.
func (m *monitor) addConsole(name, model string, socket *os.File) {
	m.inherit(socket)
	m.args = append(m.args, "-chardev", fmt.Sprintf("socket,id=%s,fd=%d", name, 2+len(m.files)))
	m.args = append(m.args, console(model, name)...)
}

// addQMP makes QEMU serve its machine protocol on a Unix socket at path, unless path is empty.
func (m *monitor) addQMP(path string) error {
	if path == "" {
		return nil
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	if err != nil {
		return err
	}
	m.inherit(f)
	m.args = append(m.args, "-chardev", fmt.Sprintf("socket,id=qmp,fd=%d,server=on,wait=off", 2+len(m.files)), "-mon", "chardev=qmp,mode=control")
	return nil
}

// share makes QEMU inherit a file, and returns a path that refers to the same open file
// description. QEMU can open it with the access mode of f, even if another user owns the file.
func (m *monitor) share(f *os.File) string {
	m.files = append(m.files, f)
	fd := 2 + len(m.files)
	m.args = append(m.args, "-add-fd", fmt.Sprintf("fd=%d,set=%d", fd, fd))
	return "/dev/fdset/" + strconv.Itoa(fd)
}

// signalPort adds the serial port, and returns the connection to write signals to.
func (m *monitor) signalPort() (*os.File, error) {
	return m.socket("signals", "-serial", "chardev:signals")
}

// socket adds a socket character device and the device that uses it, and returns this process's end.
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

// started closes this process's copies of the files that QEMU has inherited.
func (m *monitor) started() {
	for _, f := range m.files {
		f.Close()
	}
	m.files = nil
}

// close closes all files of the monitor.
func (m *monitor) close() {
	m.started()
	for _, f := range m.ours {
		f.Close()
	}
}

// streams are the program's standard streams, and whether it receives this process's signals.
type streams struct {
	in          io.Reader
	out, errors io.Writer
	results     *os.File // receives the archive of results; nil: no results are expected
	together    bool     // out and errors are the same file, so that the order of output must be kept
	signals     bool
	keys        io.Reader // reads the terminal; nil: the program has none
	started     func()    // called at the kernel's first request for the time; nil: not needed
}

// run runs QEMU until it ends or ctx ends, and returns the program's exit status.
func (m *monitor) run(ctx context.Context, s streams) (status int, err error) {
	cmd := exec.CommandContext(ctx, qemu, m.args...)
	cmd.Stdout, cmd.Stderr = m.complaint, m.complaint
	cmd.ExtraFiles = m.files
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Credential: m.user}

	// Package signal sends, sendSignals receives. If it is full, a signal is dropped; the kernel also merges pending
	// signals.
	incoming := make(chan os.Signal, 16)
	if s.signals {
		signal.Notify(incoming, forwarded...)
		defer signal.Stop(incoming)
	}
	runtime.LockOSThread() // Pdeathsig is sent when the thread that started the process ends
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("%s cannot be started: %w", qemu, err)
	}
	m.started()
	done := make(chan struct{})
	// takeQuestions sends, serial.loop receives; if it is full, another request for the time is already pending
	times := make(chan struct{}, 1)
	var killed atomic.Bool // KillSignal has arrived
	go serial{m.signals, cmd.Process.Kill, serialTime, &killed}.loop(incoming, times, done)
	var last lastByte
	var copying sync.WaitGroup
	copying.Go(func() { io.Copy(s.out, m.output) })
	kernel := newPort(m.errors, s.errors)
	copying.Go(kernel.copy)
	copying.Go(func() { io.Copy(&last, m.control) })
	copying.Go(func() { takeQuestions(m.time, times, s.started) })
	if m.channel != nil {
		terminals := &terminals{}
		defer terminals.restore()
		c := channel.Command{
			In: s.in, Out: s.out, Errors: s.errors, Together: s.together,
			Before: kernel.take, Terminal: terminals.control, Keys: s.keys,
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
	if killed.Load() {
		return 128 + int(syscall.SIGKILL), nil
	}
	if err == nil {
		err = errors.New("it ended")
	}
	return 0, fmt.Errorf("the machine did not say how the program ended: %w: %s", err, m.said.text())
}

// lastByte keeps the last byte written to it, so that a kernel that writes forever uses no memory here.
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

// complaints is a writer that keeps the beginning of the output, because QEMU reports the cause first.
type complaints struct {
	mu   sync.Mutex
	kept []byte // the beginning of the output; guarded by mu
}

// mostComplaints is the maximum number of bytes that are kept.
const mostComplaints = 16 << 10

// Write implements io.Writer.
func (c *complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, p[:min(len(p), mostComplaints-len(c.kept))]...)
	return len(p), nil
}

// text returns the output that was kept.
func (c *complaints) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace(string(c.kept))
}

// takeQuestions reads the kernel's requests for the current time until the kernel ends. Requests that
// arrive before an answer share one answer. It calls the function started, if not nil, at the first request, which the kernel
// makes before it starts the program.
func takeQuestions(questions io.Reader, times chan<- struct{}, started func()) {
	room := make([]byte, 4096)
	for {
		if _, err := questions.Read(room); err != nil {
			return
		}
		if started != nil {
			started()
			started = nil
		}
		select {
		case times <- struct{}{}:
		default:
		}
	}
}

// serial is the only writer of the serial port, through which the kernel receives signals and the time.
type serial struct {
	to       *os.File
	kill     func() error  // kills QEMU
	patience time.Duration // how long a write waits for a kernel that does not read the port
	killed   *atomic.Bool  // set when KillSignal has arrived; nil: it does not arrive
}

// serialTime is the default patience.
const serialTime = 2 * time.Second

// loop serves the port until the channel done is closed. If the kernel does not read, an answer is lost. If it does not
// read a signal that ends programs, the machine is killed, because nothing else would end it.
func (s serial) loop(incoming <-chan os.Signal, times <-chan struct{}, done <-chan struct{}) {
	for {
		select {
		case sig := <-incoming:
			if sig == KillSignal {
				s.killed.Store(true)
				s.kill() // kill fails only if QEMU has ended
				continue
			}
			if s.write([]byte{byte(sig.(syscall.Signal))}) == nil {
				continue
			}
			if sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGQUIT || sig == syscall.SIGHUP {
				s.kill() // kill fails only if QEMU has ended
			}
		case <-times:
			s.write(boot.AppendTime(nil, time.Now().UnixNano()))
		case <-done:
			return
		}
	}
}

// write writes b within s.patience. It fails if the kernel does not read or has ended.
func (s serial) write(b []byte) error {
	s.to.SetWriteDeadline(time.Now().Add(s.patience))
	_, err := s.to.Write(b)
	return err
}
