package machine

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

// rich returns a host on which every probe succeeds.
func rich() *Host {
	return &Host{
		GOOS: "linux", GOARCH: "amd64",
		FS: fstest.MapFS{
			"proc/self/status": {Data: []byte("Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000001ffffffffff\n")},
			"proc/sys/net/ipv4/ip_unprivileged_port_start": {Data: []byte("1024\n")},
			"proc/sys/net/ipv4/ping_group_range":           {Data: []byte("1\t0\n")},
		},
		OpenDevice:    func(string) error { return nil },
		Socket:        func(int, int, int) error { return nil },
		UserNamespace: func() error { return nil },
		LookPath:      func(p string) (string, error) { return "/usr/bin/" + p, nil },
		GoEnv:         func(...string) ([]string, error) { return []string{"go1.26.8", "/usr/local/go"}, nil },
		Tools: Tools{
			KnowsGo:  func(string, string) error { return nil },
			Emulator: func() Emulator { return Emulator{Version: "7.2.22", KVM: true} },
			Layers: func() []Layer {
				return []Layer{{Name: "filter", Holds: true, Detail: "filtered"}, {Name: "landlock", Holds: true, Detail: "there"}}
			},
		},
	}
}

// user returns the host that rich returns, for a user without capabilities.
func user() *Host {
	h := rich()
	h.FS.(fstest.MapFS)["proc/self/status"] = &fstest.MapFile{Data: []byte("CapEff:\t0000000000000000\n")}
	return h
}

func find(t *testing.T, h *Host, name string) Finding {
	t.Helper()
	for _, f := range Probe(h) {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no finding %q", name)
	return Finding{}
}

func TestNothingMissing(t *testing.T) {
	for _, f := range Probe(rich()) {
		if f.State != OK || f.Remedy != "" {
			t.Errorf("%+v: want ok and nothing to do", f)
		}
	}
}

// TestMissing removes one thing at a time and checks the detail and the remedy of the finding.
func TestMissing(t *testing.T) {
	refuse := func(err error) func(int, int, int) error {
		return func(int, int, int) error { return err }
	}
	for _, test := range []struct {
		name, detail, remedy string
		host                 func() *Host
	}{
		{"go", "no go command", "go.dev/dl", func() *Host {
			h := rich()
			h.GoEnv = func(...string) ([]string, error) { return nil, errors.New("not found") }
			return h
		}},
		{"go", "go1.26.8 in /usr/local/go: too new", "that Loam knows", func() *Host {
			h := rich()
			h.KnowsGo = func(string, string) error { return errors.New("too new") }
			return h
		}},
		{"process", "linux/arm64", "linux/amd64", func() *Host { h := rich(); h.GOARCH = "arm64"; return h }},
		{"vm", "no QEMU; --platform auto takes process", "apt-get install", func() *Host {
			h := rich()
			h.Emulator = func() Emulator { return Emulator{Why: "no QEMU"} }
			return h
		}},
		{"kvm", "not tried", "install QEMU", func() *Host {
			h := rich()
			h.Emulator = func() Emulator { return Emulator{Why: "no QEMU"} }
			return h
		}},
		{"kvm", "it hangs; QEMU emulates", "machine of metal", func() *Host {
			h := rich()
			h.Emulator = func() Emulator { return Emulator{Version: "7.2.22", Why: "it hangs"} }
			return h
		}},
		{"kvm", "no entry", "usermod", func() *Host {
			h := rich()
			h.Emulator = func() Emulator { return Emulator{Version: "7.2.22", Why: "no entry"} }
			h.OpenDevice = func(string) error { return syscall.EACCES }
			return h
		}},
		{"tap", "is not there", "modprobe tun", func() *Host {
			h := rich()
			h.OpenDevice = func(string) error { return syscall.ENOENT }
			return h
		}},
		{"tap", "permission denied", "chmod", func() *Host {
			h := rich()
			h.OpenDevice = func(string) error { return syscall.EACCES }
			return h
		}},
		{"tap", "may not make devices", "ip tuntap add", user},
		{"af_packet", "operation not permitted", "CAP_NET_RAW", func() *Host {
			h := rich()
			h.Socket = refuse(syscall.EPERM)
			return h
		}},
		{"af_xdp", "not supported", "CONFIG_XDP_SOCKETS", func() *Host {
			h := rich()
			h.Socket = refuse(syscall.EAFNOSUPPORT)
			return h
		}},
		{"filter", "too old", "Linux 5.5", func() *Host {
			h := rich()
			h.Layers = func() []Layer { return []Layer{{Name: "filter", Detail: "too old"}} }
			return h
		}},
		{"landlock", "no Landlock", "lsm=landlock", func() *Host {
			h := rich()
			h.Layers = func() []Layer { return []Layer{{Name: "landlock", Detail: "no Landlock"}} }
			return h
		}},
		{"ping", "ping_group_range is 1 to 0", "ping_group_range", func() *Host {
			h := rich()
			h.Socket = refuse(syscall.EACCES)
			return h
		}},
		{"low ports", "from 1024 up", "-p 8080:80", user},
		{"user namespaces", "operation not permitted", "user.max_user_namespaces", func() *Host {
			h := user()
			h.UserNamespace = func() error { return syscall.EPERM }
			return h
		}},
	} {
		f := find(t, test.host(), test.name)
		if f.State != Missing || !strings.Contains(f.Detail, test.detail) || !strings.Contains(f.Remedy, test.remedy) {
			t.Errorf("%s without it: got %+v, want detail %q and remedy %q", test.name, f, test.detail, test.remedy)
		}
	}
}

func TestUserNamespaceRemedy(t *testing.T) {
	for file, want := range map[string]string{
		"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "apparmor_restrict_unprivileged_userns=0",
		"proc/sys/kernel/unprivileged_userns_clone":             "unprivileged_userns_clone=1",
	} {
		h := user()
		value := "1"
		if strings.HasSuffix(want, "=1") {
			value = "0"
		}
		h.FS.(fstest.MapFS)[file] = &fstest.MapFile{Data: []byte(value + "\n")}
		h.UserNamespace = func() error { return syscall.EPERM }
		if f := find(t, h, "user namespaces"); !strings.Contains(f.Remedy, want) {
			t.Errorf("%s is %s: remedy %q, want %q", file, value, f.Remedy, want)
		}
	}
}

func TestLowPortsOpenToAll(t *testing.T) {
	h := user()
	h.FS.(fstest.MapFS)["proc/sys/net/ipv4/ip_unprivileged_port_start"] = &fstest.MapFile{Data: []byte("0\n")}
	if f := find(t, h, "low ports"); f.State != OK {
		t.Errorf("got %+v, want ok", f)
	}
}

// TestThisMachine runs every probe on the real machine, and checks that every missing thing has a
// remedy.
func TestThisMachine(t *testing.T) {
	h := ThisHost(rich().Tools)
	for _, f := range Probe(h) {
		if f.Detail == "" || (f.State == Missing) != (f.Remedy != "") {
			t.Errorf("%+v", f)
		}
	}
}
