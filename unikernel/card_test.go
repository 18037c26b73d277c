package unikernel

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"loam/internal/freeport"
	"loam/usernet"
)

// A program in a virtual machine is reachable through its network card: over PCI, and over MMIO on microvm.
func TestMachineCards(t *testing.T) {
	for _, model := range []string{"q35", "pc", "microvm"} {
		t.Run(model, func(t *testing.T) {
			host := freePort(t)
			ended := make(chan error, 1) // never closed; the goroutine that runs the program sends its error once
			go func() {
				status, err := Run(t.Context(), Options{
					Target:  Target{Args: []string{"./testdata/guest/once"}, Platform: Machine},
					Machine: MachineConfig{Model: model},
					Network: Network{Kind: UserNetwork, Forwards: []usernet.Forward{
						{Proto: "tcp", Host: host, Guest: netip.AddrPortFrom(netip.Addr{}, 7)},
					}},
				})
				if err == nil && status != 0 {
					t.Errorf("status %d", status)
				}
				ended <- err
			}()
			sent := bytes.Repeat([]byte("through the card "), 20_000)
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case err := <-ended:
					t.Fatalf("the machine ended before anybody was answered: %v", err)
				case <-tick.C:
				}
				if got := throughEcho(host, sent); len(got) > 0 {
					if !bytes.Equal(got, sent) {
						t.Errorf("%d bytes came back of %d, or others", len(got), len(sent))
					}
					break
				}
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// The power button ends a program that does not handle SIGTERM.
func TestMachineButton(t *testing.T) {
	e, err := FindEmulator(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]MachineConfig{
		"q35":          {Model: "q35"},
		"q35 by qboot": {Model: "q35", Emulator: Emulator{Firmware: e.Firmware}},
		"pc by qboot":  {Model: "pc", Emulator: Emulator{Firmware: e.Firmware}},
		"microvm":      {Model: "microvm"},
	} {
		t.Run(name, func(t *testing.T) { testButton(t, c) })
	}
}

func testButton(t *testing.T, machine MachineConfig) {
	host := freePort(t)
	monitor := filepath.Join(t.TempDir(), "monitor")
	machine.Monitor = monitor
	ended := make(chan int, 1) // never closed; the goroutine that runs the program sends its exit status once
	go func() {
		status, err := Run(t.Context(), Options{
			Target:  Target{Args: []string{"./testdata/guest/once"}, Platform: Machine},
			Machine: machine,
			Network: Network{Kind: UserNetwork, Forwards: []usernet.Forward{
				{Proto: "tcp", Host: host, Guest: netip.AddrPortFrom(netip.Addr{}, 7)},
			}},
		})
		if err != nil {
			t.Error(err)
		}
		ended <- status
	}()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case status := <-ended:
			if status != 128+int(syscall.SIGTERM) {
				t.Errorf("status %d", status)
			}
			return
		case <-tick.C:
			order(monitor, "system_powerdown")
		}
	}
}

// A web server runs under some load in the minimum of memory and in 8 GiB.
func TestMachineServes(t *testing.T) {
	for _, memory := range []uint64{minMemory, 8 << 30} {
		t.Run(strconv.FormatUint(memory>>20, 10)+"M", func(t *testing.T) { testServes(t, MachineConfig{Memory: memory, CPUs: 2}) })
	}
}

// The web server also runs with network cards of Intel.
func TestIntelCards(t *testing.T) {
	for card, model := range map[string]string{CardE1000e: "q35", CardE1000: "pc"} {
		t.Run(card, func(t *testing.T) { testServes(t, MachineConfig{CPUs: 2, Model: model, Card: card}) })
	}
}

// An image finds its card by itself, without a configuration.
func TestImageCards(t *testing.T) {
	image := filepath.Join(t.TempDir(), "web.elf")
	if _, err := BuildImage(t.Context(), Target{Args: []string{"../examples/web"}}, nil, FormatELF, image); err != nil {
		t.Fatal(err)
	}
	for card, model := range map[string]string{"e1000e": "q35", "e1000": "pc"} {
		host := freePort(t)
		machine := exec.Command(qemu, "-machine", model, "-accel", "tcg", "-cpu", "max", "-m", "256M", "-display", "none", "-nodefaults",
			"-no-reboot", "-nic", fmt.Sprintf("user,model=%s,hostfwd=tcp:127.0.0.1:%d-:8080", card, host.Port()), "-kernel", image)
		if err := machine.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1) // the goroutine sends once
		go func() { ended <- machine.Wait() }()
		tick := time.NewTicker(50 * time.Millisecond)
		for served := false; !served; {
			if r, err := http.Get(fmt.Sprintf("http://%s/bytes/100000", host)); err == nil {
				n, _ := io.Copy(io.Discard, r.Body)
				r.Body.Close()
				served = n == 100_000
			}
			select {
			case err := <-ended:
				t.Fatalf("%s: the machine ended: %v", card, err)
			case <-tick.C:
			}
		}
		tick.Stop()
		machine.Process.Kill()
		<-ended
	}
}

func testServes(t *testing.T, config MachineConfig) {
	host := freePort(t)
	monitor := filepath.Join(t.TempDir(), "monitor")
	config.Monitor = monitor
	ended := make(chan error, 1) // never closed; the goroutine that runs the program sends its error once
	go func() {
		status, err := Run(t.Context(), Options{
			Target:  Target{Args: []string{"../examples/web"}, Platform: Machine},
			Machine: config,
			Network: Network{Kind: UserNetwork, Forwards: []usernet.Forward{
				{Proto: "tcp", Host: host, Guest: netip.AddrPortFrom(netip.Addr{}, 8080)},
			}},
		})
		// The test presses the button until the program has ended. The first press may come before the program handles
		// SIGTERM, so both statuses are correct.
		if err == nil && status != 0 && status != 128+int(syscall.SIGTERM) {
			err = fmt.Errorf("status %d", status)
		}
		ended <- err
	}()
	const requests, size = 200, 100_000
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for served := 0; served < requests; {
		r, err := http.Get(fmt.Sprintf("http://%s/bytes/%d", host, size))
		if err == nil {
			n, err := io.Copy(io.Discard, r.Body)
			r.Body.Close()
			if err != nil || r.StatusCode != http.StatusOK || n != size {
				t.Fatalf("request %d: %s, %d bytes, %v", served, r.Status, n, err)
			}
			served++
			continue
		}
		select {
		case err := <-ended:
			t.Fatalf("the machine ended after %d requests: %v", served, err)
		case <-tick.C:
		}
	}
	for {
		order(monitor, "system_powerdown")
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return
		case <-tick.C:
		}
	}
}

// order sends a command to QEMU's machine protocol (QMP), and reports whether QEMU answered.
func order(monitor, command string) bool {
	c, err := net.Dial("unix", monitor)
	if err != nil {
		return false
	}
	defer c.Close()
	answers := bufio.NewReader(c)
	for _, text := range []string{"", `{"execute": "qmp_capabilities"}`, fmt.Sprintf(`{"execute": %q}`, command)} {
		io.WriteString(c, text)
		if _, err := answers.ReadString('\n'); err != nil {
			return false
		}
	}
	return true
}

// freePort returns a free port on the loopback interface.
func freePort(t testing.TB) netip.AddrPort {
	t.Helper()
	at, err := freeport.Next()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// throughEcho sends bytes to an echo server and returns its answer, or nil if no server listens
// yet.
func throughEcho(to netip.AddrPort, sent []byte) []byte {
	c, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(to))
	if err != nil {
		return nil
	}
	defer c.Close()
	go func() {
		c.Write(sent)
		c.CloseWrite()
	}()
	got, _ := io.ReadAll(c)
	return got
}
