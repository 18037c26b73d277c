package setting

import (
	"maps"
	"os"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/mem"
	"loam/posix"
	"loam/task/core"
	"loam/task/family"
	"loam/task/sysv"
)

// The number at the beginning of a text is read as proc_dointvec of Linux does. TestLinuxSettings of package unikernel compares more texts
// with Linux.
func TestNumber(t *testing.T) {
	for text, want := range map[string]int64{
		"7": 7, "7\n": 7, "0x1F 8\n": 31, "010": 8, "0": 0, "-3": -3, "-0x10": -16, "00000000000000000012": 10,
	} {
		if n, _, ok := number(text); !ok || n != want {
			t.Errorf("%q: %d, %v, want %d", text, n, ok, want)
		}
	}
	for _, text := range []string{"", "\n", "x", "7x", "+7", "--7", "1_000", "0x", "08", "5\x00x", "99999999999999999999", "0000000000000000000012"} {
		if n, _, ok := number(text); ok {
			t.Errorf("%q: %d", text, n)
		}
	}
}

// A write of several numbers uses the first one, and a write at an offset has no effect.
func TestInteger(t *testing.T) {
	value := int64(1)
	s := Integer(0, 9, func() int64 { return value }, func(n int64) { value = n })
	for _, test := range []struct {
		text   string
		offset int64
		n      int
		err    error
		want   string
	}{
		{"3", 0, 1, nil, "3\n"}, {" 4 5\n", 0, 3, nil, "4\n"}, {"-0", 0, 2, nil, "0\n"}, {"6 x", 0, 2, nil, "6\n"}, {"1", 3, 1, nil, "6\n"},
		{"x", 0, 0, linux.EINVAL, "6\n"}, {"\n", 0, 0, linux.EINVAL, "6\n"}, {"10", 0, 0, linux.EINVAL, "6\n"},
	} {
		if n, err := s.Set(test.text, test.offset); n != test.n || err != test.err || s.Text() != test.want {
			t.Errorf("%q at %d: %d, %v, %q, want %d, %v, %q", test.text, test.offset, n, err, s.Text(), test.n, test.err, test.want)
		}
	}
}

// Each setting exists on Linux, too, has a default that it accepts, and changes what the kernel uses.
func TestAll(t *testing.T) {
	var account mem.Account
	p := posix.New(posix.Options{})
	tree, _ := family.New()
	var cores core.Settings
	limits := sysv.Defaults()
	settings := All(&account, p)
	maps.Copy(settings, Processes(tree, &cores))
	maps.Copy(settings, SysV(func(f func(*sysv.Limits)) { f(&limits) }))
	for path, s := range settings {
		if _, err := os.Stat("/proc/" + path); err != nil {
			t.Errorf("on Linux: %v", err)
		}
		before := s.Text()
		if _, err := s.Set(before, 0); err != nil || s.Text() != before {
			t.Errorf("%s: %v, %q becomes %q", path, err, before, s.Text())
		}
	}
	for path, text := range map[string]string{
		"kernel/hostname": "name\n", "vm/overcommit_memory": "2\n", "vm/overcommit_ratio": "0\n", "vm/max_map_count": "262144\n",
		"net/core/somaxconn": "65535\n", "net/ipv4/ip_unprivileged_port_start": "80\n", "fs/pipe-max-size": "8192\n", "fs/pipe-user-pages-soft": "0\n",
		"kernel/pid_max": "301\n", "kernel/core_pattern": "/tmp/%e.%p\n", "kernel/core_uses_pid": "1\n", "kernel/sem": "1\t2\t3\t4\n",
		"fs/nr_open": "1024\n", "fs/inotify/max_queued_events": "1\n", "fs/inotify/max_user_instances": "2\n",
		"fs/inotify/max_user_watches": "3\n", "net/ipv4/tcp_congestion_control": "bbr\n",
		"net/ipv4/tcp_mtu_probing": "2\n", "net/ipv4/tcp_base_mss": "512\n", "net/ipv4/tcp_mtu_probe_floor": "400\n",
		"net/ipv4/tcp_probe_threshold": "4\n", "net/ipv4/tcp_probe_interval": "60\n",
	} {
		if _, err := settings["sys/"+path].Set(text, 0); err != nil || settings["sys/"+path].Text() != text {
			t.Errorf("%s: %v, %q", path, err, settings["sys/"+path].Text())
		}
	}
	if account.Rule() != mem.Never || account.Limit() != 0 || account.MaxRegions() != 262144 || p.Uname().Nodename != "name" ||
		p.Inet().Backlog.Load() != 65535 || p.Inet().FirstPort.Load() != 80 || p.Pipes().MaxSize() != 8192 || p.Pipes().SoftPages() != 0 {
		t.Error("a value has no effect")
	}
	queued, instances, watches := p.Watchers().Limits()
	if tree.Most() != 301 || cores.Pattern() != "/tmp/%e.%p" || cores.UsesPID.Load() != 1 || limits.Operations != 3 || p.MostFiles() != 1024 ||
		queued != 1 || instances != 2 || watches != 3 || p.Inet().Congestion() != "bbr" {
		t.Error("a value has no effect")
	}
	for path, text := range map[string]string{
		"vm/overcommit_memory": "3", "vm/max_map_count": "-1", "net/ipv4/ip_unprivileged_port_start": "65536", "net/core/somaxconn": "2147483648",
		"fs/pipe-max-size": "-0", "fs/pipe-user-pages-soft": " -0\n", "fs/pipe-user-pages-hard": "-0x0",
		"kernel/pid_max": "300", "kernel/core_pattern": "|/bin/cat", "fs/nr_open": "63", "fs/inotify/max_user_watches": "-1",
		"kernel/shmmax": "18446744073709551616", "net/ipv4/ip_local_port_range": "1 2",
		"net/ipv4/tcp_mtu_probing": "3", "net/ipv4/tcp_base_mss": "0",
	} {
		if _, err := settings["sys/"+path].Set(text, 0); err != linux.EINVAL {
			t.Errorf("%s: %s is accepted: %v", path, text, err)
		}
	}
	if s := settings["sys/kernel/hostname"]; s.Text() != "name\n" || !sets(s, strings.Repeat("x", 100)) || len(s.Text()) != linux.NameMax+1 {
		t.Errorf("a long name: %q", s.Text())
	}
}

func sets(s Setting, text string) bool {
	n, err := s.Set(text, 0)
	return n == len(text) && err == nil
}
