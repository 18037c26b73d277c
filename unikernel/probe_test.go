package unikernel

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for out, want := range map[string]struct {
		version string
		ok      bool
	}{
		"QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright": {"7.2.22", true},
		"QEMU emulator version 10.0.2\nCopyright":                                   {"10.0.2", true},
		"QEMU emulator version 6.2.0 (Debian 1:6.2+dfsg-2ubuntu6.27)\n":             {"6.2.0", false},
		"QEMU emulator version 7.1.50":                                              {"7.1.50", false},
		"something else":                                                            {`""`, false},
	} {
		if version, ok := parseVersion(out); version != want.version || ok != want.ok {
			t.Errorf("%q: %s, %v", out, version, ok)
		}
	}
}

// fakeQEMU puts a shell script into PATH under QEMU's name.
func fakeQEMU(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, qemu), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// Without QEMU, or with a QEMU that is too old, Choose chooses a process and gives the reason. ChooseMachine fails with
// advice.
func TestChooseProcess(t *testing.T) {
	for why, prepare := range map[string]func(t *testing.T){
		"there is no " + qemu:           func(t *testing.T) { t.Setenv("PATH", t.TempDir()) },
		"QEMU 6.2.0 is older than 7.2":  func(t *testing.T) { fakeQEMU(t, "echo QEMU emulator version 6.2.0") },
		"--version fails: exit status ": func(t *testing.T) { fakeQEMU(t, "exit 1") },
	} {
		t.Run(why, func(t *testing.T) {
			prepare(t)
			c, err := Choose(t.Context())
			if err != nil || c.Platform != Process || !strings.Contains(c.Why, why) {
				t.Errorf("%+v, %v", c, err)
			}
			if _, err := ChooseMachine(t.Context()); err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "apt-get install") {
				t.Errorf("%v", err)
			}
		})
	}
}

// The result of the probe is cached. Without a writable cache, the probe runs each time.
func TestEmulatorIsCached(t *testing.T) {
	for name, cache := range map[string]string{"cache": t.TempDir(), "none": "/proc/nowhere"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", cache)
			count := filepath.Join(t.TempDir(), "count")
			fakeQEMU(t, "echo x >>"+count+"\necho QEMU emulator version 6.2.0")
			for range 2 {
				if e, err := FindEmulator(t.Context()); err != nil || e.Version != "" {
					t.Errorf("%+v, %v", e, err)
				}
			}
			asked, _ := os.ReadFile(count)
			if want := map[string]int{"cache": 1, "none": 2}[name]; strings.Count(string(asked), "x") != want {
				t.Errorf("QEMU was asked %d times, want %d", strings.Count(string(asked), "x"), want)
			}
		})
	}
}

// The probe always ends within its time limit, either with KVM or with a one-line reason.
func TestProbe(t *testing.T) {
	e, err := FindEmulator(t.Context())
	if err != nil || e.Version == "" || (e.Accelerator == KVM) != (e.Why == "") || strings.Contains(e.Why, "\n") {
		t.Errorf("%+v, %v", e, err)
	}
	t.Logf("%+v", e)
}

// A QEMU without a system call filter is detected, and the filter is not requested then.
func TestSandbox(t *testing.T) {
	for has, path := range map[bool]string{true: "true", false: "false"} {
		if hasSandbox(t.Context(), path) != has {
			t.Errorf("%s: %v", path, !has)
		}
		m := newMonitor(&MachineConfig{CPUs: 1, Model: "q35", Emulator: Emulator{Sandbox: has}}, nil)
		if slices.Contains(m.args, qemuSandbox) != has {
			t.Errorf("with a sandbox %v: %q", has, m.args)
		}
	}
}

// A machine with a card e1000 does not use the fast firmware, which connects no interrupt lines. Others do.
func TestFirmware(t *testing.T) {
	for card, want := range map[string]bool{"": true, CardVirtio: true, CardE1000e: true, CardE1000: false} {
		m := newMonitor(&MachineConfig{CPUs: 1, Model: "q35", Card: card, Emulator: Emulator{Firmware: "fast.rom"}}, nil)
		if slices.Contains(m.args, "fast.rom") != want {
			t.Errorf("%q: %q", card, m.args)
		}
	}
}

// The test guest for KVM runs under TCG with either firmware.
func TestProbeGuest(t *testing.T) {
	e, err := FindEmulator(t.Context())
	if err != nil || e.Firmware == "" {
		t.Fatalf("%+v, %v: QEMU comes with qboot", e, err)
	}
	program, err := buildProbe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, firmware := range []string{"", e.Firmware} {
		if err := bootProbe(t.Context(), program, Emulator{Firmware: firmware, Sandbox: e.Sandbox}); err != nil {
			t.Errorf("firmware %q: %v", firmware, err)
		}
	}
}

func TestAlarm(t *testing.T) {
	rings := 0
	a := alarm{word: "KVM internal error", ring: func() { rings++ }}
	for _, s := range []string{"warning: KVM", " internal", " error. Suberror: 1\n", "KVM internal error"} {
		a.Write([]byte(s))
	}
	if rings != 1 || !a.rung {
		t.Errorf("%d rings", rings)
	}
}
