//go:build linux

package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// buildLoam builds the loam command.
func buildLoam(t *testing.T) string {
	t.Helper()
	command := filepath.Join(t.TempDir(), "loam")
	if out, err := exec.Command("go", "build", "-o", command, "../../cmd/loam").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return command
}

// TestRunDHCP checks that a program of "loam run" on a tap gets its address from dnsmasq and serves
// HTTP there, as a process and in a virtual machine.
func TestRunDHCP(t *testing.T) {
	command := buildLoam(t)
	for _, platform := range []string{"process", "vm"} {
		t.Run(platform, func(t *testing.T) {
			l, router := openLab(t)
			if platform == "vm" {
				l.need("qemu-system-x86_64")
			}
			l.makeTap(setup{}, router)
			l.Cleanup(l.remove)
			leases := filepath.Join(t.TempDir(), "leases")
			first := router.Next()
			l.startDnsmasq(router.String(), "--dhcp-leasefile="+leases, "--no-ping",
				"--dhcp-range="+first.String()+","+first.Next().String()+",2m")

			program := l.start(command, "run", "--platform", platform, "--net", "tap:"+l.tap, "../../examples/web")
			program.awaitOutput("listening on")
			text, err := os.ReadFile(leases)
			l.must(err)
			lease := strings.Fields(string(text)) // expiry time, link-layer address, address, name
			if len(lease) < 3 || lease[2] != first.String() && lease[2] != first.Next().String() {
				t.Fatalf("leases: %q", text)
			}
			if page := l.run("curl", "--silent", "--show-error", "--fail", "http://"+lease[2]+":8080/"); !strings.Contains(page, "<html") {
				t.Errorf("the page is %q", page)
			}
			l.must(program.cmd.Process.Signal(os.Interrupt))
			<-program.ended
			if status := program.cmd.ProcessState.ExitCode(); status != 0 {
				t.Errorf("exit status %d", status)
			}
		})
	}
}
