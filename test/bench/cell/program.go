package cell

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"

	"loam/test/bench/guest"
	"loam/test/bench/load"
	"loam/test/bench/subject"
)

// Names of the samples of a program, with their units. A program in a virtual machine has all of them, a program that
// runs as a process only the first five. The monitor is the process of QEMU.
const (
	FirstAnswer  = "first answer" // ms from the start of the monitor or the process
	OneClient    = "1"            // requests per second over one connection
	ManyClients  = "16"           // requests per second over 16 connections
	SyscallWrite = "syscall"      // ns per write to /dev/null by syscall.Write
	FileWrite    = "file"         // ns per write to /dev/null by os.File.Write
	OneCPU       = "cpu 1"        // µs of the monitor's CPU time per request, over one connection
	ManyCPU      = "cpu 16"       // µs of the monitor's CPU time per request, over 16 connections
	UsedMemory   = "used"         // MiB of the machine's memory that is not available, while it is idle
	Resident     = "resident"     // MiB of the monitor's resident memory, while the machine is idle
	Beyond       = "beyond"       // MiB of the booted files, without the program
	FirstCPU     = "first cpu"    // ms of the monitor's CPU time until the first answer
	FirstWait    = "first wait"   // ms that the busiest virtual CPU waited for a CPU of the host, until then
	Upload       = "upload"       // MB of payload per second of one HTTPS upload
	UploadCPU    = "cpu upload"   // ms of the monitor's CPU time per MB of the upload
)

const mebi = 1 << 20

// machineServer is the HTTP server of the program in a virtual machine.
var machineServer = load.HTTP{Server: netip.AddrPortFrom(subject.Second.Addr(), guest.Port)}

// program runs the program of package guest and the loads on it.
func program(spec Spec) (load.Samples, error) {
	if spec.Place == Machine {
		return machine(spec)
	}
	return hosted(spec)
}

// machine boots a machine twice, and measures the second boot. In the first boot after a pause of
// seconds, the host must also load the pages of the monitor and find memory again. That takes up to a
// fifth of a second, whatever is booted.
func machine(spec Spec) (samples load.Samples, err error) {
	runtime.LockOSThread() // a machine is killed when the thread that started it ends
	tap, err := openTap()
	if err != nil {
		return nil, err
	}
	defer tap.Close()
	dir, err := os.MkdirTemp("", "loam-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	log := filepath.Join(dir, "log")
	cold, _, err := boot(spec, tap, log)
	if err != nil {
		return nil, err
	}
	cold.End()
	m, samples, err := boot(spec, tap, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if text := m.End(); err != nil {
			err = fmt.Errorf("%w; the machine: %s", err, text)
		}
	}()
	if err := memory(m, machineServer, samples); err != nil {
		return nil, err
	}
	beyond, err := spec.Files.Beyond(spec.Subject)
	if err != nil {
		return nil, err
	}
	samples[Beyond] = float64(beyond) / mebi
	if err := upload(samples, spec.Span, m.CPU); err != nil {
		return nil, fmt.Errorf("upload: %w", err)
	}
	return samples, work(machineServer, samples, spec.Span, m.CPU)
}

// upload measures an HTTPS upload into a machine.
func upload(samples load.Samples, span time.Duration, cpu func() (time.Duration, error)) error {
	before, err := cpu()
	if err != nil {
		return err
	}
	h := load.HTTP{Server: netip.AddrPortFrom(machineServer.Server.Addr(), guest.TLSPort)}
	bytes, took, err := h.Upload(span)
	if err != nil {
		return err
	}
	after, err := cpu()
	megabytes := float64(bytes) / 1e6
	samples[Upload], samples[UploadCPU] = megabytes/took.Seconds(), milliseconds(after-before)/max(megabytes, 1)
	return err
}

// boot starts a machine and waits for its first answer.
func boot(spec Spec, tap *os.File, log string) (*guest.Machine, load.Samples, error) {
	start := time.Now()
	m, err := guest.Boot(spec.Files, spec.Subject, spec.Model, spec.CPUs, tap, log)
	if err != nil {
		return nil, nil, err
	}
	samples := load.Samples{}
	err = firstAnswer(machineServer, samples, start, betweenMachine, m.Ended)
	if err == nil {
		var ran, waited time.Duration
		ran, waited, err = m.Scheduled()
		samples[FirstCPU], samples[FirstWait] = milliseconds(ran), milliseconds(waited)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w; the machine: %s", err, m.End())
	}
	return m, samples, nil
}

// openTap creates the tap of a machine's card, and configures the kernel's end. It adds a permanent
// neighbour entry for the card: an ARP request sent before the machine can answer would be repeated
// only after a second.
func openTap() (*os.File, error) {
	fd, err := subject.OpenTap(linkName, true)
	if err != nil {
		return nil, err
	}
	tap := os.NewFile(uintptr(fd), "tap")
	if err := tapUp(); err != nil {
		tap.Close()
		return nil, err
	}
	device, err := netlink.LinkByName(linkName)
	if err == nil {
		err = netlink.NeighSet(&netlink.Neigh{
			LinkIndex: device.Attrs().Index, State: netlink.NUD_PERMANENT,
			IP: subject.Second.Addr().AsSlice(), HardwareAddr: net.HardwareAddr(guest.CardAddress[:]),
		})
	}
	if err != nil {
		tap.Close()
		return nil, err
	}
	return tap, nil
}

// hosted runs the program as a process.
func hosted(spec Spec) (load.Samples, error) {
	ownNetwork := spec.Place == Wire && spec.Subject == subject.Linux
	p, err := start(context.Background(), hostVerb, spec, ownNetwork)
	if err != nil {
		return nil, err
	}
	defer p.end()
	server := loopback
	switch {
	case ownNetwork:
		server = subject.First.Addr()
		if err := errors.Join(veth(p.cmd.Process.Pid, subject.Second), carried(nearName)); err != nil {
			return nil, err
		}
	case spec.Place == Wire:
		server = subject.Second.Addr()
	}
	var why error
	failed := make(chan struct{}) // closed when host has reported the reason
	go func() {
		_, why = p.answer()
		close(failed)
	}()
	begin := time.Now()
	if err := p.proceed(); err != nil {
		return nil, err
	}
	samples := load.Samples{}
	h := load.HTTP{Server: netip.AddrPortFrom(server, guest.Port)}
	if err := firstAnswer(h, samples, begin, betweenProcess, failed); err != nil {
		p.in.Close() // closing its input makes the process exit
		<-failed
		return nil, errors.Join(err, why)
	}
	return samples, work(h, samples, spec.Span, nil)
}

// patience is the longest time until a program's first answer.
const patience = 2 * time.Minute

// Intervals between attempts until the first answer. A process starts in a few milliseconds, a machine
// in hundreds of milliseconds.
const (
	betweenProcess = 2 * time.Millisecond
	betweenMachine = 10 * time.Millisecond
)

// firstAnswer waits for the first answer, or until the program has ended.
func firstAnswer(h load.HTTP, samples load.Samples, start time.Time, between time.Duration, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go func() {
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := h.FirstAnswer(ctx, between); err != nil {
		return fmt.Errorf("no first answer: %w", err)
	}
	samples[FirstAnswer] = milliseconds(time.Since(start))
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// settle is the time for which a machine is idle before its memory is measured.
const settle = time.Second

// memory measures the memory of an idle machine: the amount that the guest reports as used, and the resident memory
// of the monitor (QEMU).
func memory(m *guest.Machine, h load.HTTP, samples load.Samples) error {
	time.Sleep(settle)
	var available int64
	if err := h.Get("/memory", &available); err != nil {
		return err
	}
	samples[UsedMemory] = float64(guest.Memory-available) / mebi
	resident, err := m.Resident()
	if err != nil {
		return err
	}
	samples[Resident] = float64(resident) / mebi
	return nil
}

// work measures requests, and makes the program measure its writes. cpu returns the CPU time used so
// far, or is nil.
func work(h load.HTTP, samples load.Samples, span time.Duration, cpu func() (time.Duration, error)) error {
	for _, c := range []struct {
		conns      int
		rate, cost string
	}{{1, OneClient, OneCPU}, {16, ManyClients, ManyCPU}} {
		if err := requests(h, c.conns, span, cpu, func(rate, cost float64) {
			samples[c.rate] = rate
			if cpu != nil {
				samples[c.cost] = cost
			}
		}); err != nil {
			return fmt.Errorf("%d connections: %w", c.conns, err)
		}
	}
	var costs struct{ Syscall, File float64 }
	if err := h.Get("/write", &costs); err != nil {
		return err
	}
	samples[SyscallWrite], samples[FileWrite] = costs.Syscall, costs.File
	return nil
}

// requests measures requests per second, and the CPU time of each in µs.
func requests(h load.HTTP, conns int, span time.Duration, cpu func() (time.Duration, error), report func(rate, cost float64)) error {
	if cpu == nil {
		cpu = func() (time.Duration, error) { return 0, nil }
	}
	before, err := cpu()
	if err != nil {
		return err
	}
	count, took, err := h.Requests(conns, span)
	if err != nil {
		return err
	}
	after, err := cpu()
	report(float64(count)/took.Seconds(), float64((after-before).Microseconds())/float64(max(count, 1)))
	return err
}
