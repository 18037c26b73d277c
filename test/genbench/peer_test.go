//go:build linux

package genbench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/gen/bench"
)

// Names of the peers.
const (
	trafgen  = "trafgen"
	testpmdP = "testpmd, net_af_packet"
	testpmdX = "testpmd, net_af_xdp"
	hping    = "hping3"
)

// inC is the name of the loop in C that makes the calls of a method.
func inC(method string) string { return method + " in C" }

// loops are the methods that there is a loop in C for.
var loops = []string{"udp", "mmsg", "udpgso", "raw", "packet", "xdp"}

// peers are all that take part beside our methods.
func peers(t testing.TB, near, dst string) []bench.Contestant {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "loops")
	if out, err := exec.Command("gcc", "-O2", "-Wall", "-Werror", "-o", program, "testdata/loops.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var all []bench.Contestant
	for _, m := range loops {
		all = append(all, command(inC(m), program, m, near, dst))
	}
	config := filepath.Join(dir, "frame.cfg")
	if err := os.WriteFile(config, []byte(trafgenFrame(dst)), 0o644); err != nil {
		t.Fatal(err)
	}
	// Both send round the queueing discipline unless told otherwise, as ours does.
	all = append(all, command(trafgen, "trafgen", "--dev", near, "--conf", config, "--cpus", "1"))
	all = append(all, testpmd(testpmdP, "net_af_packet0,qdisc_bypass=1,iface="+near), testpmd(testpmdX, "net_af_xdp0,iface="+near))
	const payload = "18"
	return append(all, command(hping, "hping3", "--udp", "--flood", "-q", "-n", "-I", near, "-p", "9", "-d", payload, dst))
}

// trafgenFrame is the frame that all send, in trafgen's words.
func trafgenFrame(dst string) string {
	address := strings.ReplaceAll(dst, ".", ",")
	source := strings.TrimSuffix(address, "2") + "1"
	return fmt.Sprintf("{ 2,0,0,0,0,0x99, 2,0,0,0,0,1, 8,0, 0x45,0,0,46, 0,0,0x40,0, 64,17,0,0, %s, %s, 4,0, 0,9, 0,26, 0,0, fill(0,18) }\n", source, address)
}

// testpmd sends from processor 0, where all others do.
func testpmd(name, device string) bench.Contestant {
	return command(name, "dpdk-testpmd", "--no-huge", "-m", "512", "--no-pci", "-l", "0,1", "--main-lcore", "1", "--no-telemetry", "--file-prefix=loam", "--vdev="+device,
		"--", "--forward-mode=txonly", "--txpkts=60", "--nb-cores=1", "--total-num-mbufs=8192", "--eth-peer=0,02:00:00:00:00:99")
}

// command is a program that sends until it is interrupted.
func command(name string, args ...string) bench.Contestant {
	start := func(context.Context) (*bench.Running, error) {
		c := exec.Command(args[0], args[1:]...)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		// testpmd ends when it can read a line.
		stdin, err := c.StdinPipe()
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			return nil, err
		}
		// ended is closed when the program has ended, and all that it wrote is there.
		ended := make(chan struct{})
		go func() {
			c.Wait()
			close(ended)
		}()
		stop := func() (bench.Sent, error) {
			select {
			case <-ended:
				return bench.Sent{}, fmt.Errorf("%s ended by itself: %s", args[0], tail(out.String()))
			default:
			}
			stdin.Close()
			end(c.Process.Pid, ended)
			return bench.Sent{}, nil
		}
		return &bench.Running{Stop: stop, Group: c.Process.Pid}, nil
	}
	return bench.Contestant{Name: name, Queues: 1, Start: start}
}

// tail is the end of what a program has written.
func tail(s string) string { return s[max(0, len(s)-2000):] }

// end interrupts a group of processes, and kills what does not end by that.
func end(group int, ended <-chan struct{}) {
	syscall.Kill(-group, syscall.SIGINT)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
	}
	syscall.Kill(-group, syscall.SIGKILL) // children that were left too
	<-ended
}
