package machine

import (
	"errors"
	"fmt"
	"syscall"
)

// Probes of the toolchain and of the platforms that programs can run on.

func toolchain(h *Host) Finding {
	f := Finding{Area: "toolchain", Name: "go", State: Missing}
	env, err := h.GoEnv("GOVERSION", "GOROOT")
	if err != nil || len(env) != 2 {
		f.Detail = "there is no go command in PATH"
		f.Remedy = "install Go 1.26 or later from https://go.dev/dl and put its bin folder into PATH"
		return f
	}
	version, goroot := env[0], env[1]
	f.Detail = fmt.Sprintf("%s in %s", version, goroot)
	if err := h.KnowsGo(goroot, version); err != nil {
		f.Detail += ": " + err.Error()
		f.Remedy = "install a release of Go that Loam knows (loam version lists them) from https://go.dev/dl"
		return f
	}
	f.State = OK
	return f
}

func process(h *Host) Finding {
	f := Finding{Area: "platform", Name: "process", State: OK, Detail: "a process on " + h.GOOS + "/" + h.GOARCH}
	if h.GOOS != "linux" || h.GOARCH != "amd64" {
		f.State = Missing
		f.Remedy = "run Loam on linux/amd64"
	}
	return f
}

// virtualMachine checks for QEMU, which decides what --platform auto selects.
func virtualMachine(h *Host) Finding {
	f := Finding{Area: "platform", Name: "vm", State: OK}
	e := h.Emulator()
	if e.Version == "" {
		f.State = Missing
		f.Detail = e.Why + "; --platform auto takes process"
		f.Remedy = "install QEMU 7.2 or later (Debian: apt-get install qemu-system-x86)"
		return f
	}
	f.Detail = "QEMU " + e.Version + "; --platform auto takes vm"
	return f
}

// kvm checks whether guests run with KVM. The probe boots one.
func kvm(h *Host) Finding {
	const device = "/dev/kvm"
	f := Finding{Area: "platform", Name: "kvm", State: OK, Detail: "a guest runs by it"}
	e := h.Emulator()
	if e.KVM {
		return f
	}
	f.State = Missing
	if e.Version == "" {
		f.Detail, f.Remedy = "not tried without QEMU", "install QEMU first"
		return f
	}
	f.Detail = e.Why + "; QEMU emulates the processor, which is many times slower"
	switch err := h.OpenDevice(device); {
	case errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM):
		f.Remedy = "join the group that owns " + device + " (sudo usermod -aG kvm $USER, then log in again)"
	case err != nil:
		f.Remedy = "switch virtualisation on in the firmware, or nested virtualisation on the host, and load kvm_intel or kvm_amd"
	default:
		f.Remedy = "nothing here mends it: run where KVM boots guests, as on a machine of metal, or live with the emulation"
	}
	return f
}
