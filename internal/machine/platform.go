package machine

import "fmt"

// What builds programs, and what they can run on.

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

// virtualMachine says what is there. KVM is not used yet; whether it can run a guest
// shows when one is run: some machines have a /dev/kvm that cannot.
func virtualMachine(h *Host) Finding {
	f := Finding{Area: "platform", Name: "vm", State: OK}
	const emulator, kvm = "qemu-system-x86_64", "/dev/kvm"
	if path, err := h.LookPath(emulator); err == nil {
		f.Detail = path
	} else {
		f.State = Missing
		f.Detail = "no " + emulator
		f.Remedy = "install QEMU (Debian: apt-get install qemu-system-x86)"
	}
	if err := h.OpenDevice(kvm); err == nil {
		f.Detail += ", " + kvm + " opens"
	} else {
		f.Detail += ", " + kvm + " does not open: " + err.Error()
	}
	return f
}
