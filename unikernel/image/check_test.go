package image

import (
	"encoding/hex"
	"testing"

	"loam/boot"
	"loam/internal/race"
)

// A fault of the hardware ends the machine with a word about it. QEMU's monitor is that
// hardware.
func TestMachineCheck(t *testing.T) {
	if race.Enabled {
		t.Skip("nothing in it is raced")
	}
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

// command has QEMU's monitor do something.
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
