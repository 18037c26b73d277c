//go:build !race

package image

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/boot"
)

// Bochs is an emulator that follows the processor's rules more strictly than QEMU, and has firmware and devices of its
// own. It boots only from disks, so the program is on a CD image with GRUB.

// bochsNeeds are the files that the test needs, with the Debian packages that contain them.
var bochsNeeds = map[string]string{
	"/usr/bin/bochs-bin":                                        "bochs",
	"/usr/share/bochs/BIOS-bochs-latest":                        "bochsbios",
	"/usr/share/vgabios/vgabios.bin":                            "vgabios",
	"/usr/lib/x86_64-linux-gnu/bochs/plugins/libbx_term_gui.so": "bochs-term",
	"/usr/bin/grub-mkrescue":                                    "grub-common",
	"/usr/lib/grub/i386-pc/moddep.lst":                          "grub-pc-bin",
	"/usr/bin/xorriso":                                          "xorriso",
	"/usr/bin/mformat":                                          "mtools",
}

// bochsConfig is Bochs's configuration. Arguments: the folder of this test, and the number of processors.
// Debian's Bochs has no display without output, so its terminal output is discarded.
const bochsConfig = `config_interface: textconfig
display_library: term
cpu: model=corei7_haswell_4770, count=%[2]d, ips=20000000, reset_on_triple_fault=0
memory: guest=64, host=64
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path=%[1]s/boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=%[1]s/serial
log: %[1]s/log
clock: sync=none, time0=local
`

// bochsTime bounds the test, which takes some seconds.
const bochsTime = 3 * time.Minute

// A program boots under Bochs and runs on both processors, which use x2APIC.
func TestBochs(t *testing.T) {
	for file, pkg := range bochsNeeds {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("there is no %s: apt-get install %s", file, pkg)
		}
	}
	dir := t.TempDir()
	writeCD(t, filepath.Join(dir, "boot.iso"))
	write(t, filepath.Join(dir, "config"), fmt.Sprintf(bochsConfig, dir, 2))
	write(t, filepath.Join(dir, "commands"), "c\n") // the debugger waits for a command before it starts: c continues

	cmd := exec.Command("bochs-bin", "-q", "-f", filepath.Join(dir, "config"), "-rc", filepath.Join(dir, "commands"))
	cmd.Env = append(os.Environ(), "TERM=vt100")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when this thread ends
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(bochsTime); time.Now().Before(end); <-tick.C {
		if serial, _ := os.ReadFile(filepath.Join(dir, "serial")); strings.Contains(string(serial), "spread by x2APIC over 2\n") {
			return
		}
	}
	serial, _ := os.ReadFile(filepath.Join(dir, "serial"))
	log, _ := os.ReadFile(filepath.Join(dir, "log"))
	t.Errorf("the program said %q; Bochs says\n%s", serial, log[max(0, len(log)-4000):])
}

// writeCD makes a CD whose boot loader starts the guest.
func writeCD(t *testing.T, iso string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "cd")
	write(t, filepath.Join(root, "guest.elf"), string(prepared(t, built(t))))
	words, err := boot.Config{Args: []string{"guest", "spread", "3"}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "config"), string(words))
	write(t, filepath.Join(root, "boot/grub/grub.cfg"), "set timeout=0\nmultiboot2 /guest.elf\nmodule2 --nounzip /config\nboot\n")
	if out, err := exec.Command("grub-mkrescue", "-d", "/usr/lib/grub/i386-pc", "-o", iso, root).CombinedOutput(); err != nil {
		t.Fatalf("grub-mkrescue: %v: %s", err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
