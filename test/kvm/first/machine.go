//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"loam/test/kvm/report"
	"loam/test/kvm/work"
)

const (
	// patience is the longest time for everything that a machine does; each takes seconds.
	patience = 2 * time.Minute

	// port is the address of the program, through QEMU's gateway.
	port = "127.0.0.1:8080"

	// oldClock is the time of the machine's PC clock, years in the past. A program that reports the
	// right time got it from KVM.
	oldClock = "2020-01-01"
)

// machine is a running virtual machine.
type machine struct {
	cmd   *exec.Cmd
	ended chan error // receives the result of cmd.Wait, once
	said  *os.File
}

// try boots a machine and checks its program.
func try(m report.Machine) error {
	r, err := start(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err = r.check(ctx, m.CPUs)
	if err == nil {
		err = r.end(ctx)
	}
	if err != nil {
		r.cmd.Process.Kill()
		said, _ := os.ReadFile(r.said.Name())
		err = fmt.Errorf("%w; it said:\n%s", err, said)
	}
	r.said.Close()
	return err
}

// start starts QEMU like loam run on a host with KVM.
func start(m report.Machine) (*machine, error) {
	card, random, more := "virtio-net-pci,romfile=", "virtio-rng-pci", []string{"-bios", "/usr/share/qemu/qboot.rom"}
	model := m.Model
	switch model {
	case "q35":
		model += ",sata=off"
	case "microvm":
		card, random, more = "virtio-net-device", "virtio-rng-device", []string{"-global", "virtio-mmio.force-legacy=false"}
	}
	said, err := os.CreateTemp("", "said")
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"-machine", model, "-accel", "kvm", "-cpu", "host", "-m", "256M", "-smp", strconv.Itoa(m.CPUs),
		"-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-device", "isa-debug-exit",
		"-rtc", "base=" + oldClock, "-serial", "file:" + said.Name(), "-kernel", report.Program,
		"-netdev", "user,id=n,hostfwd=tcp:" + port + "-:80", "-device", card + ",netdev=n", "-device", random,
	}, more...)
	r := &machine{cmd: exec.Command("qemu-system-x86_64", args...), ended: make(chan error, 1), said: said}
	r.cmd.Stdout, r.cmd.Stderr = said, said
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { r.ended <- r.cmd.Wait() }()
	return r, nil
}

// check waits for the program and checks it.
func (r *machine) check(ctx context.Context, cpus int) error {
	if err := r.await(ctx); err != nil {
		return err
	}
	if err := checkClock(ctx, cpus); err != nil {
		return err
	}
	return load(ctx)
}

// await waits until the program answers.
func (r *machine) await(ctx context.Context) error {
	for {
		_, err := state(ctx)
		if err == nil {
			return nil
		}
		select {
		case err := <-r.ended:
			return fmt.Errorf("QEMU ended early: %v", err)
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var client = http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}

func get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, "GET", "http://"+port+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

func state(ctx context.Context) (s report.State, err error) {
	data, err := get(ctx, "/state")
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	return s, err
}

// checkClock compares the program's clocks with Linux's, over one second.
func checkClock(ctx context.Context, cpus int) error {
	before := time.Now()
	first, err := state(ctx)
	if err != nil {
		return err
	}
	late := time.Since(before)
	time.Sleep(time.Second)
	again := time.Now()
	second, err := state(ctx)
	if err != nil {
		return err
	}
	late += time.Since(again)
	const odd = 20 * time.Millisecond
	passed, want := second.Since-first.Since, again.Sub(before)
	if off := (passed - want).Abs(); off > late+odd {
		return fmt.Errorf("%v passed in the program where %v did in Linux", passed, want)
	}
	if off := time.Duration(second.Wall - again.UnixNano()).Abs(); off > late+time.Second {
		return fmt.Errorf("the time of the day is %v off", off)
	}
	if first.CPUs != cpus {
		return fmt.Errorf("the program sees %d CPUs", first.CPUs)
	}
	return nil
}

// The load: the number of concurrent clients, and the requests of each.
const clients, requests = 8, 10

// load makes the program compute, and checks the results.
func load(ctx context.Context) error {
	errs := make([]error, clients)
	var wait sync.WaitGroup
	for c := range clients {
		wait.Go(func() {
			for n := range requests {
				seed := c*requests + n
				got, err := get(ctx, "/sum?seed="+strconv.Itoa(seed))
				if want := fmt.Sprint(work.Sum(seed)); err == nil && string(got) != want {
					err = fmt.Errorf("the program computes %s, and Linux %s", got, want)
				}
				errs[c] = errors.Join(errs[c], err)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// end ends the program and waits for the machine to end.
func (r *machine) end(ctx context.Context) error {
	get(ctx, "/end") // there is no response, since the program ends
	select {
	case <-r.ended:
	case <-ctx.Done():
		return errors.New("the machine runs on after its program's end")
	}
	const want = report.Status<<1 | 1 // the exit status that isa-debug-exit produces
	if status := r.cmd.ProcessState.ExitCode(); status != want {
		return fmt.Errorf("QEMU ended with status %d, not %d", status, want)
	}
	return nil
}
