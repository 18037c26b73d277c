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

// Samples of a program. A machine has all of them, a process all but the last
// seven.
const (
	FirstAnswer  = "first answer" // ms from the start of the monitor, or of the process
	OneClient    = "1"            // requests a second over one connection
	ManyClients  = "16"           // over sixteen
	SyscallWrite = "syscall"      // ns for a write to /dev/null by syscall.Write
	FileWrite    = "file"         // and by os.File.Write
	OneCPU       = "cpu 1"        // µs of CPU time of the monitor for a request, over one connection
	ManyCPU      = "cpu 16"       // over sixteen
	UsedMemory   = "used"         // MiB of the machine that cannot be had any more, idle
	Resident     = "resident"     // MiB that the monitor holds, idle
	Beyond       = "beyond"       // MiB of what is booted, beyond the program
	FirstCPU     = "first cpu"    // ms of CPU time of the monitor until the first answer
	FirstWait    = "first wait"   // ms for which the machine's busiest CPU waited for one of the host until then
)

const mebi = 1 << 20

// machineServer is the program in a machine.
var machineServer = load.HTTP{Server: netip.AddrPortFrom(subject.Second.Addr(), guest.Port)}

// program runs the program of package guest, and the loads on it.
func program(spec Spec) (load.Samples, error) {
	if spec.Place == Machine {
		return machine(spec)
	}
	return hosted(spec)
}

// machine boots one, twice: the first boot, after seconds in which nobody had a machine,
// also has the host find the pages of the monitor again, and memory, which takes it up
// to a fifth of a second whatever is booted. The second counts.
func machine(spec Spec) (samples load.Samples, err error) {
	runtime.LockOSThread() // a machine ends with the thread that started it
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
	return samples, work(machineServer, samples, spec.Span, m.CPU)
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

// openTap makes the tap that a machine's card is on, with the kernel's end set up.
// The kernel need not ask where the card is: who asks before there is anybody to
// answer waits for a second.
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
	failed := make(chan struct{}) // closed when the host has said why
	go func() {
		_, why = p.answer()
		close(failed)
	}()
	begin := time.Now()
	if err := p.goOn(); err != nil {
		return nil, err
	}
	samples := load.Samples{}
	h := load.HTTP{Server: netip.AddrPortFrom(server, guest.Port)}
	if err := firstAnswer(h, samples, begin, betweenProcess, failed); err != nil {
		p.in.Close() // it ends then
		<-failed
		return nil, errors.Join(err, why)
	}
	return samples, work(h, samples, spec.Span, nil)
}

// patience is how long a program may take to answer for the first time.
const patience = 2 * time.Minute

// How often it is asked until then: a process comes up in a few milliseconds, a machine
// in hundreds.
const (
	betweenProcess = 2 * time.Millisecond
	betweenMachine = 10 * time.Millisecond
)

// firstAnswer waits for it, unless the program has ended.
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

// settle is how long a machine idles before its memory is looked at.
const settle = time.Second

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

// work counts requests, and has the program measure its writes. cpu is the time that
// was used so far, or nil.
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

// requests counts them, and what each costs in µs.
func requests(h load.HTTP, conns int, span time.Duration, cpu func() (time.Duration, error), tell func(rate, cost float64)) error {
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
	tell(float64(count)/took.Seconds(), float64((after-before).Microseconds())/float64(max(count, 1)))
	return err
}
