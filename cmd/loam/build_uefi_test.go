//go:build !race

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/internal/freeport"
)

// UEFI firmware of the package ovmf: the code, and the content of its memory for variables.
const (
	firmwareCode      = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	firmwareVariables = "/usr/share/OVMF/OVMF_VARS_4M.fd"
)

// uefiTime bounds a machine, which takes some seconds on a host at rest.
const uefiTime = 10 * time.Minute

// UEFI firmware boots an image of each format. The program serves HTTP on a virtio network card, and the machine ends with
// the program's exit status.
func TestBuildUEFI(t *testing.T) {
	if _, err := os.Stat(firmwareCode); err != nil {
		t.Skipf("there is no %s: apt-get install ovmf", firmwareCode)
	}
	loam := command(t)
	main := program(t, `package main

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
)

func main() {
	done := make(chan bool)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "on %d CPUs", runtime.NumCPU()) })
	http.HandleFunc("/end", func(w http.ResponseWriter, r *http.Request) { close(done) })
	go http.ListenAndServe(":80", nil)
	<-done
	os.Exit(5)
}
`)
	for i, c := range []struct{ format, machine, medium string }{
		{"efi", "q35", "-device virtio-blk-pci,drive=medium"},
		{"img", "pc", "-device virtio-blk-pci,drive=medium"},
		{"qcow2", "q35", "-device nvme,serial=1,drive=medium"},
		{"iso", "q35", "-device ide-cd,drive=medium"},
	} {
		cpus := 1 + i%2
		dir := t.TempDir()
		image := filepath.Join(dir, "program."+c.format)
		drive := "if=none,id=medium,snapshot=on,format=raw,file=" + image
		switch c.format {
		case "qcow2":
			drive = "if=none,id=medium,snapshot=on,format=qcow2,file=" + image
		case "efi":
			boot := filepath.Join(dir, "EFI", "BOOT")
			if err := os.MkdirAll(boot, 0o755); err != nil {
				t.Fatal(err)
			}
			image, drive = filepath.Join(boot, "BOOTX64.EFI"), "if=none,id=medium,format=raw,file=fat:rw:"+dir
		}
		if out, err := loam("build", "--format", c.format, "-o", image, main).CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%s: %v: %s", c.format, err, out)
		}
		host, err := freeport.Next()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), uefiTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, "qemu-system-x86_64", append(strings.Fields(c.medium), "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "256M",
			"-machine", c.machine, "-smp", fmt.Sprint(cpus), "-display", "none", "-nodefaults", "-serial", "stdio", "-no-reboot",
			"-device", "isa-debug-exit", "-drive", "if=pflash,format=raw,readonly=on,file="+firmwareCode,
			"-drive", "if=pflash,format=raw,snapshot=on,file="+firmwareVariables, "-drive", drive,
			"-netdev", fmt.Sprintf("user,id=net,hostfwd=tcp:%s-:80", host),
			"-device", "virtio-net-pci,netdev=net,romfile=")...) // without the card's ROM, firmware starts in half the time
		checkServer(t, c.format, cmd, "http://"+host.String(), fmt.Sprintf("on %d CPUs", cpus))
	}
}

// checkServer starts a machine, waits until its HTTP server answers with want, and lets it end with status 5.
func checkServer(t *testing.T, name string, cmd *exec.Cmd, address, want string) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when this thread ends
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	client := &http.Client{Timeout: 10 * time.Second}
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
	for {
		r, err := client.Get(address)
		if err == nil {
			body, err := io.ReadAll(r.Body)
			r.Body.Close()
			if err == nil && string(body) != want {
				t.Errorf("%s: %q, want %q", name, body, want)
			}
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("%s: the machine ended: %v: %s", name, err, out.String())
		case <-poll.C:
		}
	}
	if r, err := client.Get(address + "/end"); err == nil {
		r.Body.Close()
	}
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.ExitCode() != 2*5+1 {
		t.Errorf("%s: %v: %s", name, err, out.String())
	}
}

// The end of the file's name selects the format, unless --format does. An unknown format is an error.
func TestBuildFormat(t *testing.T) {
	loam := command(t)
	main := program(t, "package main\n\nfunc main() {}\n")
	dir := t.TempDir()
	for _, c := range []struct{ name, flag, want string }{
		{"a", "", "\x7fELF"},
		{"a.elf", "", "\x7fELF"},
		{"a.img", "--format=elf", "\x7fELF"},
		{"a.efi", "", "MZ"},
		{"a.qcow2", "", "QFI\xfb"},
		{"a.bin", "--format=qcow2", "QFI\xfb"},
		{"a.img", "", "\xcd\x18\xeb\xfe"},
	} {
		args := []string{"build", "-o", filepath.Join(dir, c.name), main}
		if c.flag != "" {
			args = append(args, c.flag)
		}
		out, err := loam(args...).CombinedOutput()
		b, rerr := os.ReadFile(filepath.Join(dir, c.name))
		if err := errors.Join(err, rerr); err != nil || len(out) > 0 || !bytes.HasPrefix(b, []byte(c.want)) {
			t.Errorf("%s %s: %v: %s: %q", c.name, c.flag, err, out, b[:min(len(b), 4)])
		}
	}
	out, err := loam("build", "--format", "vmdk", "-o", filepath.Join(dir, "b"), main).CombinedOutput()
	if err == nil || !strings.Contains(string(out), `there is no format "vmdk"`) || bytes.Count(out, []byte("\n")) != 1 {
		t.Errorf("%v: %s", err, out)
	}
}
