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

// Names of the other generators that are measured.
const (
	trafgen  = "trafgen"
	testpmdP = "testpmd, net_af_packet"
	testpmdX = "testpmd, net_af_xdp"
	hping    = "hping3"
)

// inC returns the name of the loop in C that makes the system calls of a method.
func inC(method string) string { return method + " in C" }

// loops are the methods for which there is a loop in C.
var loops = []string{"udp", "mmsg", "udpgso", "raw", "packet", "xdp"}

// peers returns all contestants except Loam's methods: other generators and loops in C.
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
	// Both programs, trafgen and testpmd, bypass the queueing discipline by default, as Loam does.
	all = append(all, command(trafgen, "trafgen", "--dev", near, "--conf", config, "--cpus", "1"))
	all = append(all, testpmd(testpmdP, "net_af_packet0,qdisc_bypass=1,iface="+near), testpmd(testpmdX, "net_af_xdp0,iface="+near))
	const payload = "18"
	return append(all, command(hping, "hping3", "--udp", "--flood", "-q", "-n", "-I", near, "-p", "9", "-d", payload, dst))
}

// trafgenFrame returns the common frame in trafgen's syntax.
func trafgenFrame(dst string) string {
	address := strings.ReplaceAll(dst, ".", ",")
	source := strings.TrimSuffix(address, "2") + "1"
	return fmt.Sprintf("{ 2,0,0,0,0,0x99, 2,0,0,0,0,1, 8,0, 0x45,0,0,46, 0,0,0x40,0, 64,17,0,0, %s, %s, 4,0, 0,9, 0,26, 0,0, fill(0,18) }\n", source, address)
}

// testpmd returns a contestant that sends from processor 0, like all others.
func testpmd(name, device string) bench.Contestant {
	return command(name, "dpdk-testpmd", "--no-huge", "-m", "512", "--no-pci", "-l", "0,1", "--main-lcore", "1", "--no-telemetry", "--file-prefix=loam", "--vdev="+device,
		"--", "--forward-mode=txonly", "--txpkts=60", "--nb-cores=1", "--total-num-mbufs=8192", "--eth-peer=0,02:00:00:00:00:99")
}

// command returns a contestant that sends until it is interrupted.
func command(name string, args ...string) bench.Contestant {
	start := func(context.Context) (*bench.Running, error) {
		c := exec.Command(args[0], args[1:]...)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		// testpmd exits when it can read a line.
		stdin, err := c.StdinPipe()
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			return nil, err
		}
		// ended is closed when the program has ended and all its output has been read.
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

// tail returns the end of the output of a program.
func tail(s string) string { return s[max(0, len(s)-2000):] }

// end interrupts a process group, and kills processes that do not exit.
func end(group int, ended <-chan struct{}) {
	syscall.Kill(-group, syscall.SIGINT)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
	}
	syscall.Kill(-group, syscall.SIGKILL) // kills remaining child processes too
	<-ended
}
