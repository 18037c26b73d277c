//go:build !race

package image

import (
	"encoding/hex"
	"testing"

	"loam/boot"
)

// A hardware failure (machine check) ends the machine with a message. QEMU's monitor injects the failure.
func TestMachineCheck(t *testing.T) {
	vm := startHeld(t, boot.Config{Args: []string{"guest", "late"}}, 1)
	vm.resume(1)
	vm.expect("ready\n")
	vm.stop()
	vm.command("mce 0 1 0xbe00000000000000 0x5 0x0 0x0")
	vm.resume(1)
	vm.expect("\n")
	vm.expect("loam: the hardware has failed (a machine check)\n")
	vm.expect("vector 0x0000000000000012\n")
}

// command runs a command of QEMU's monitor.
func (vm *held) command(line string) {
	vm.t.Helper()
	vm.send("qRcmd," + hex.EncodeToString([]byte(line)))
	for got := vm.receive(); got != "OK"; got = vm.receive() {
		text, err := hex.DecodeString(got[min(1, len(got)):])
		if got == "" || got[0] != 'O' || err != nil {
			vm.t.Fatalf("%s: %q %q", line, got, text)
		}
	}
}
