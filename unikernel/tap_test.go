package unikernel

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"loam/internal/netns"
)

// onTap is the variable that makes this binary the host of a TAP device: it runs the program once on the device, and
// exchanges data with it. Its value is a machine model and the number of CPUs.
const onTap = "LOAM_TEST_TAP"

// A virtual machine is connected to a TAP device with all offloads, and with a queue per CPU if the device
// supports that. The other end is Linux, and the command assigns it addresses of both IP versions.
func TestMachineTap(t *testing.T) {
	if !netns.Can() {
		t.Skip("needs a network namespace: run as root, or allow unprivileged user namespaces")
	}
	for _, machine := range []string{"q35 1", "q35 2", "microvm 2"} {
		t.Run(machine, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), onTap+"="+machine)
			netns.Enter(cmd)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok\n" {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// hostTap is the host's side of TestMachineTap.
func hostTap(machine string) error {
	var model string
	var cpus int
	if _, err := fmt.Sscan(machine, &model, &cpus); err != nil {
		return err
	}
	type end struct {
		status int
		err    error
	}
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("0"), 0); err != nil {
		return err
	}
	ended := make(chan end, 1) // the goroutine that runs the program sends its result once
	go func() {
		status, err := Run(context.Background(), Options{
			Target:  Target{Args: []string{"./testdata/guest/once"}, Platform: Machine},
			Machine: MachineConfig{Model: model, CPUs: cpus},
			Network: Network{
				Kind: TapNetwork, Tap: "loam0",
				Address: netip.MustParsePrefix("192.0.2.2/24"), Gateway: netip.MustParseAddr("192.0.2.1"),
				Address6: netip.MustParsePrefix("fd00:2::2/64"), Gateway6: netip.MustParseAddr("fd00:2::1"),
			},
		})
		ended <- end{status, err}
	}()
	at := netip.MustParseAddrPort("192.0.2.2:7")
	if cpus == 2 {
		at = netip.MustParseAddrPort("[fd00:2::2]:7")
	}
	sent := bytes.Repeat([]byte("through the tap "), 200_000)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case e := <-ended:
			return fmt.Errorf("the machine ended before anybody was answered: %v", e)
		case <-tick.C:
		}
		if got := throughEcho(at, sent); len(got) > 0 {
			if !bytes.Equal(got, sent) {
				return fmt.Errorf("%d bytes came back of %d, or others", len(got), len(sent))
			}
			break
		}
	}
	if e := <-ended; e != (end{}) {
		return fmt.Errorf("the end: %v", e)
	}
	return nil
}

// A trace of a TAP device is rejected, and the error names a command that makes one.
func TestMachineTapTrace(t *testing.T) {
	n := &network{}
	err := n.giveTap(&Network{Tap: "tap7", Trace: "x.pcapng"})
	if err == nil || !strings.Contains(err.Error(), "tcpdump -i tap7 -w x.pcapng") {
		t.Error(err)
	}
}
