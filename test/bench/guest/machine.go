package guest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"loam/boot"
	"loam/test/bench/guest/layout"
	"loam/test/bench/subject"
	"loam/wire"
)

// Machine types of QEMU.
const (
	Q35     = "q35"
	MicroVM = "microvm"
)

// Memory is the memory of a machine in bytes.
const Memory = 256 << 20

// CardAddress is the link-layer address of the virtual machine's network card.
var CardAddress = wire.MAC{0x52, 0x54, 0, 0, 0, 1}

// Machine is a running virtual machine.
type Machine struct {
	cmd *exec.Cmd
	log *os.File
	// Ended is closed when the monitor (QEMU) has ended.
	Ended chan struct{}
}

// quick are kernel parameters with which Linux boots and runs as fast as possible. It prints almost
// nothing, trusts QEMU's clocks, and omits mitigations of processor vulnerabilities, which Loam does
// not have either.
const quick = "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check random.trust_cpu=on audit=0"

// Boot starts a machine with a card on tap, an open device. The machine's output goes to the file
// logPath.
func Boot(f *Files, kernel, model string, cpus int, tap *os.File, logPath string) (*Machine, error) {
	log, err := os.Create(logPath)
	if err != nil {
		return nil, err
	}
	machine := model
	if model == Q35 {
		machine += ",sata=off" // no disk controller, which the firmware would probe
	}
	args := []string{
		"-machine", machine, "-accel", "tcg", "-cpu", "max",
		"-m", strconv.Itoa(Memory>>20) + "M", "-smp", strconv.Itoa(cpus),
		"-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-device", "isa-debug-exit",
		"-chardev", "file,id=log,path=/dev/fd/4,append=on", "-serial", "chardev:log",
		"-netdev", "tap,id=cable,fd=3,vhost=off",
	}
	if model == Q35 && f.Firmware != "" {
		args = append(args, "-bios", f.Firmware)
	}
	card := "virtio-net-pci,romfile=" // no firmware for booting from the network
	if model == MicroVM {
		card = "virtio-net-device"
		args = append(args, "-global", "virtio-mmio.force-legacy=false")
	}
	args = append(args, "-device", fmt.Sprintf("%s,netdev=cable,mac=%v", card, CardAddress))
	for i, port := range []int{boot.PortOutput, boot.PortErrors, boot.PortControl} {
		id := "port" + strconv.Itoa(i)
		args = append(args, "-chardev", "file,id="+id+",path=/dev/fd/4,append=on", "-device", fmt.Sprintf("isa-debugcon,iobase=%#x,chardev=%s", port, id))
	}
	if kernel == subject.Loam {
		args = append(args, "-kernel", f.Image, "-initrd", f.Config)
	} else {
		args = append(args, "-kernel", f.Linux, "-initrd", f.Archive,
			"-append", quick+" "+layout.AddressVariable+"="+subject.Second.String())
	}
	m := &Machine{cmd: exec.Command("qemu-system-x86_64", args...), log: log, Ended: make(chan struct{})}
	m.cmd.Stderr = log
	m.cmd.ExtraFiles = []*os.File{tap, log}
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		log.Close()
		return nil, err
	}
	go func() {
		m.cmd.Wait()
		close(m.Ended)
	}()
	return m, nil
}

// Resident returns the resident memory of the monitor (QEMU) in bytes.
func (m *Machine) Resident() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(status, []byte("\nVmRSS:"))
	words := bytes.Fields(rest)
	if len(words) == 0 {
		return 0, errors.New("the monitor has ended")
	}
	kib, err := strconv.ParseInt(string(words[0]), 10, 64)
	return kib << 10, err
}

// CPU returns the CPU time that the monitor (QEMU) has used, with a resolution of 10 ms: fields 14 and 15 of
// proc_pid_stat(5).
func (m *Machine) CPU() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(stat, []byte(") ")) // skips the name of the process, which may contain any character
	words := bytes.Fields(rest)
	const user, system = 14 - 3, 15 - 3
	if len(words) <= system {
		return 0, errors.New("the monitor has ended")
	}
	a, err1 := strconv.ParseInt(string(words[user]), 10, 64)
	b, err2 := strconv.ParseInt(string(words[system]), 10, 64)
	const tick = 10 * time.Millisecond
	return time.Duration(a+b) * tick, errors.Join(err1, err2)
}

// Scheduled returns how long the monitor's threads have run, in total, and how long the thread that ran
// most was runnable but not running. That thread is a CPU of the machine. The values are the first and
// the second field of /proc/PID/task/TID/schedstat (Linux, Documentation/scheduler/sched-stats).
func (m *Machine) Scheduled() (ran, waited time.Duration, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", m.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	var most time.Duration
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		var on, off time.Duration
		if _, err := fmt.Sscan(string(text), &on, &off); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", name, err)
		}
		if ran += on; on > most {
			most, waited = on, off
		}
	}
	if ran == 0 {
		return 0, 0, errors.New("the monitor has ended")
	}
	return ran, waited, nil
}

// Beyond returns the size in bytes of the booted files without the program itself.
func (f *Files) Beyond(kernel string) (int64, error) {
	files := []string{f.Linux, f.Archive}
	if kernel == subject.Loam {
		files = []string{f.Image, f.Config}
	}
	sum := -f.ForProgram
	for _, name := range files {
		st, err := os.Stat(name)
		if err != nil {
			return 0, err
		}
		sum += st.Size()
	}
	return sum, nil
}

// End kills the machine and returns the last lines of its output.
func (m *Machine) End() string {
	m.cmd.Process.Kill()
	<-m.Ended
	text, _ := os.ReadFile(m.log.Name())
	m.log.Close()
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(len(lines)-5, 0):], " | ")
}
