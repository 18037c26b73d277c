package pseudo

import (
	"errors"
	iofs "io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
)

// mounted returns a tree with /proc, /sys, /sys/fs/cgroup and /dev, for a program that runs alone in its machine.
func mounted(t *testing.T) *fs.View {
	t.Helper()
	v := fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	v.Umask = 0
	p := Process{
		PID: 7, Executable: "/bin/server", Arguments: []string{"server", "-v"}, Mounts: []Mount{{Path: "/a b"}}, Hostname: func() string { return "loam" }, Domain: func() string { return "(none)" }, Release: "6.1.0-loam", Version: "Loam",
		Started: time.Now(), Somaxconn: 4096, Congestions: []string{"cubic", "bbr"}, ClockSource: "tsc", Meltdown: "Not affected",
		Alone:       true,
		Memory:      func() (uint64, uint64) { return 64 << 20, 32 << 20 },
		Used:        func() time.Duration { return 1500 * time.Millisecond },
		Maps:        func() string { return "00400000-00401000 r-xp 00000000 00:00 0\n" },
		Net:         map[string]func() string{"igmp": func() string { return "Idx\n" }},
		Interfaces:  map[string]map[string]func() string{"eth0": {"statistics/rx_bytes": func() string { return "7\n" }}},
		Folder:      func() string { return "/work" },
		Descriptors: func() []int { return []int{0, 3, 10} },
		Descriptor:  func(fd int) string { return map[int]string{0: "/dev/tty", 3: "/tmp/x", 10: "socket:[10]"}[fd] },
	}
	for _, path := range []string{"/proc", "/sys"} {
		if err := v.Mkdir(v.Root, path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range []struct {
		path   string
		system fs.FileSystem
	}{{"/proc", Proc(p)}, {"/sys", Sys(p)}, {cgroupFolder, Cgroup(p)}} {
		at, err := v.Lookup(v.Root, m.path, true)
		if err == nil {
			err = v.Tree.Mount(m.system, at, true)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Mkdir(v.Root, "/dev", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Devices(v); err != nil {
		t.Fatal(err)
	}
	return v
}

// text returns the content of a file.
func text(t *testing.T, v *fs.View, path string) string {
	t.Helper()
	f, err := v.Open(v.Root, path, fs.ReadOnly, 0)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer f.Close()
	b := make([]byte, 1<<16)
	n, err := f.Read(b)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return string(b[:n])
}

// The files have the content that proc(5) and sysfs(5) describe.
func TestContents(t *testing.T) {
	v := mounted(t)
	for path, want := range map[string]string{
		"/proc/self/cmdline":                        "server\x00-v\x00",
		"/proc/7/comm":                              "server\n",
		"/proc/self/status":                         "Name:\tserver\n",
		"/proc/self/stat":                           "7 (server) R 0 7 7 0 0 0 0 0 0 0 150 0 ",
		"/proc/meminfo":                             "MemTotal:          65536 kB\nMemFree:           32768 kB\n",
		"/proc/sys/net/core/somaxconn":              "4096\n",
		"/proc/sys/net/ipv4/tcp_congestion_control": "cubic\n",
		"/proc/sys/net/ipv4/tcp_available_congestion_control":                "cubic bbr\n",
		"/proc/sys/kernel/domainname":                                        "(none)\n",
		"/proc/sys/kernel/hostname":                                          "loam\n",
		"/proc/mounts":                                                       "loam / tmpfs rw 0 0\nloam /a\\040b tmpfs ro 0 0\nproc /proc proc ro 0 0\n",
		"/proc/self/mountinfo":                                               "1 1 0:1 / / rw - tmpfs loam rw\n2 1 0:2 / /a\\040b ro - tmpfs loam ro\n3 1 0:3 / /proc ro - proc proc ro\n4 1 0:4 / /sys ro - sysfs sysfs ro\n5 1 0:5 / /sys/fs/cgroup ro - cgroup2 cgroup2 ro\n",
		"/sys/fs/cgroup/cgroup.controllers":                                  "cpu io memory pids\n",
		"/sys/fs/cgroup/cgroup.procs":                                        "7\n",
		"/sys/fs/cgroup/cpu.max":                                             "max 100000\n",
		"/sys/fs/cgroup/cpu.stat":                                            "usage_usec 1500000\n",
		"/sys/fs/cgroup/cpu.pressure":                                        "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00",
		"/sys/fs/cgroup/memory.max":                                          "67108864\n",
		"/sys/fs/cgroup/memory.current":                                      "33554432\n",
		"/sys/fs/cgroup/memory.high":                                         "max\n",
		"/sys/fs/cgroup/memory.stat":                                         "anon 33554432\n",
		"/sys/fs/cgroup/pids.max":                                            "max\n",
		"/sys/class/net/eth0/statistics/rx_bytes":                            "7\n",
		"/sys/devices/system/cpu/vulnerabilities/meltdown":                   "Not affected\n",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource":   "tsc\n",
		"/sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc \n",
		"/sys/devices/system/cpu/online":                                     "0",
		"/sys/devices/system/cpu/possible":                                   "0",
		"/sys/devices/system/cpu/offline":                                    "\n",
		"/sys/devices/system/cpu/cpu0/online":                                "1\n",
		"/proc/stat":                                                         "cpu  150 0 0 ",
		"/proc/diskstats":                                                    "",
		"/proc/pressure/memory":                                              "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00",
		"/proc/vmstat":                                                       "nr_free_pages 8192\n",
		"/proc/sys/fs/file-nr":                                               "3\t0\t1048576\n",
		"/proc/sys/kernel/osrelease":                                         "6.1.0-loam\n",
		"/proc/sys/kernel/version":                                           "Loam\n",
		"/proc/version":                                                      "Linux version 6.1.0-loam",
		"/proc/cpuinfo":                                                      "processor\t: 0\n",
		"/proc/net/igmp":                                                     "Idx\n",
		"/proc/self/maps":                                                    "00400000-",
		"/proc/self/cgroup":                                                  "0::/\n",
		"/proc/self/io":                                                      "rchar: 0\nwchar: 0\n",
		"/proc/sys/kernel/random/boot_id":                                    bootID(),
		"/proc/sys/net/ipv4/ip_local_port_range":                             "32768",
		"/proc/sys/net/ipv4/ping_group_range":                                "0\t2147483647\n",
	} {
		if got := text(t, v, path); !strings.HasPrefix(got, want) {
			t.Errorf("%s says %q, want %q", path, got, want)
		}
	}
	if n := len(strings.Fields(text(t, v, "/proc/self/stat"))); n != 52 {
		t.Errorf("/proc/self/stat has %d fields", n)
	}
	for path, want := range map[string]string{
		"/proc/self": "7", "/proc/self/exe": "/bin/server", "/proc/self/cwd": "/work",
		"/proc/self/fd/3": "/tmp/x", "/dev/stdin": "/proc/self/fd/0",
	} {
		if got, err := v.Readlink(v.Root, path); got != want || err != nil {
			t.Errorf("%s leads to %q, %v", path, got, err)
		}
	}
	if got := listing(t, v, "/proc/self/fd"); got != ". .. 0 3 10" {
		t.Errorf("/proc/self/fd has %q", got)
	}
}

// listing returns the names in a directory, in listing order.
func listing(t *testing.T, v *fs.View, path string) string {
	t.Helper()
	f, err := v.Open(v.Root, path, fs.ReadOnly, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var names []string
	f.ReadDir(func(e fs.Entry) bool { names = append(names, e.Name); return true })
	return strings.Join(names, " ")
}

// Files passed as a map are listed in the order of their names.
func TestListingsInOrder(t *testing.T) {
	text := func() string { return "" }
	files := map[string]func() string{}
	for _, name := range strings.Split("abcdefghijklmnop", "") {
		files[name] = text
	}
	const order = ". .. a b c d e f g h i j k l m n o p"
	p := Process{Net: files, Interfaces: map[string]map[string]func() string{}}
	for name := range files {
		p.Interfaces[name] = files
	}
	v := fs.NewView(fs.NewTree(Sys(p)))
	if got := listing(t, v, "/class/net"); got != order {
		t.Errorf("/sys/class/net has %q", got)
	}
	v = fs.NewView(fs.NewTree(Proc(p)))
	if got := listing(t, v, "/0/net"); got != order {
		t.Errorf("/proc/net has %q", got)
	}
}

// No file or directory can be modified.
func TestReadOnly(t *testing.T) {
	v := mounted(t)
	_, err := v.Open(v.Root, "/proc/meminfo", fs.WriteOnly, 0)
	if !errors.Is(err, linux.EROFS) {
		t.Errorf("open for writing: %v", err)
	}
	for what, err := range map[string]error{
		"mkdir":  v.Mkdir(v.Root, "/proc/x", 0o755),
		"unlink": v.Unlink(v.Root, "/proc/meminfo"),
	} {
		if err == nil {
			t.Errorf("%s works", what)
		}
	}
	f := New(ProcMagic)
	f.Fixed("a/b", "text")
	v = fs.NewView(fs.NewTree(f))
	if err := v.Mkdir(v.Root, "/x", 0o755); err != linux.ENOENT {
		t.Errorf("mkdir: %v", err)
	}
	if _, err := v.Open(v.Root, "/a/b", fs.ReadWrite, 0); err != linux.EACCES {
		t.Errorf("open for writing: %v", err)
	}
	if err := v.Rename(v.Root, "/a", v.Root, "/b", 0); err != linux.EPERM {
		t.Errorf("rename: %v", err)
	}
}

// The devices behave as in mem(4), full(4) and random(4).
func TestDevices(t *testing.T) {
	v := mounted(t)
	b := make([]byte, 1024)
	for path, want := range map[string]struct {
		read  int
		write error
	}{
		"/dev/null": {0, nil}, "/dev/zero": {1024, nil}, "/dev/full": {1024, linux.ENOSPC},
		"/dev/random": {1024, nil}, "/dev/urandom": {1024, nil},
	} {
		f, err := v.Open(v.Root, path, fs.ReadWrite, 0)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if n, err := f.Read(b); n != want.read || err != nil {
			t.Errorf("%s: read %d, %v", path, n, err)
		}
		if _, err := f.Write(b); err != want.write {
			t.Errorf("%s: write: %v", path, err)
		}
		if at, err := f.Seek(0, fs.SeekCur); err != nil {
			t.Errorf("%s: seek: %d, %v", path, at, err)
		}
	}
	f, _ := v.Open(v.Root, "/dev/urandom", fs.ReadOnly, 0)
	var x, y [16]byte
	f.Read(x[:])
	f.Read(y[:])
	if x == y {
		t.Error("/dev/urandom repeats itself")
	}
}

// A file system with constant content follows the rules of package io/fs.
func TestIO(t *testing.T) {
	f := New(SysMagic)
	f.Fixed("a/b/c", "")
	f.Fixed("a/d", "")
	if err := fstest.TestFS(fs.NewView(fs.NewTree(f)).IO(), "a/b/c", "a/d"); err != nil {
		t.Error(err)
	}
}

// If several programs share the memory of the machine, the file memory.max of the control group says max (no limit).
func TestCgroupOfOneAmongOthers(t *testing.T) {
	v := fs.NewView(fs.NewTree(Cgroup(Process{Memory: func() (uint64, uint64) { return 64 << 20, 0 }})))
	if got := text(t, v, "/memory.max"); got != "max\n" {
		t.Errorf("memory.max says %q", got)
	}
	if got := v.Root.Usage().Type; got != CgroupMagic {
		t.Errorf("the file system is of type %#x", got)
	}
}

// Files of Process.Replaced replace files of this package, and appear also where it has none, in a new directory.
func TestReplaced(t *testing.T) {
	p := Process{PID: 1, Replaced: map[string]func() string{
		"sys/kernel/pid_max": func() string { return "7\n" },
		"sysvipc/shm":        func() string { return "header\n" },
	}}
	v := fs.NewView(fs.NewTree(Proc(p)))
	for path, want := range map[string]string{"/sys/kernel/pid_max": "7\n", "/sysvipc/shm": "header\n"} {
		place, err := v.Lookup(v.Root, path, true)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		h, err := place.Node.Open(fs.ReadOnly)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, _ := h.ReadAt(b, 0)
		if string(b[:n]) != want {
			t.Errorf("%s: %q, want %q", path, b[:n], want)
		}
	}
	if len(p.Replaced) != 2 {
		t.Error("the caller's map has changed")
	}
}

// A setting is replaced by each write; a refused write changes nothing. Truncation and appending have no other effect, and
// the mode cannot be changed.
func TestSetting(t *testing.T) {
	value := "off\n"
	p := Process{PID: 1, Settings: map[string]Setting{HugePagePolicy: {
		Text: func() string { return value },
		Set: func(text string, offset int64) (int, error) {
			if text == "bad" || offset != 0 {
				return len(text), linux.EINVAL
			}
			value = text
			return len(text), nil
		},
	}}}
	v := fs.NewView(fs.NewTree(Sys(p)))
	const path = "/" + HugePagePolicy
	for _, test := range []struct {
		flags fs.Flags
		text  string
		err   error
		want  string
	}{
		{fs.WriteOnly, "bad", linux.EINVAL, "off\n"},
		{fs.WriteOnly | fs.Truncate, "on", nil, "on"},
		{fs.ReadWrite | fs.Append, "again", nil, "again"},
	} {
		f, err := v.Open(v.Root, path, test.flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		n, err := f.Write([]byte(test.text))
		if err != test.err || (n == len(test.text)) != (err == nil) {
			t.Errorf("%q: %d, %v, want %v", test.text, n, err, test.err)
		}
		if at, err := f.Seek(0, fs.SeekCur); err != nil || at != int64(n) {
			t.Errorf("%q: the offset is %d, %v, want %d", test.text, at, err, n)
		}
		if n, err := f.WriteAt([]byte("bad"), 0); n != 0 || err != linux.EINVAL {
			t.Errorf("pwrite of a wrong text: %d, %v", n, err)
		}
		f.Close()
		if got := text(t, v, path); got != test.want {
			t.Errorf("after %q: %q, want %q", test.text, got, test.want)
		}
	}
	place, err := v.Lookup(v.Root, path, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := place.Node.Change(fs.Change{Fields: fs.SetMode}); err != linux.EPERM {
		t.Errorf("chmod: %v", err)
	}
	if _, err := v.Open(v.Root, "/kernel/mm/transparent_hugepage/defrag", fs.WriteOnly, 0); err != linux.EACCES {
		t.Errorf("another file: %v", err)
	}
}

// Masks of CPUs are as Linux's format "%*pb" prints them. lscpu counts threads and cores by the masks in topology.
func TestCPUMasks(t *testing.T) {
	for _, test := range []struct {
		first, end, all int
		want            string
	}{
		{0, 1, 1, "1\n"}, {1, 2, 2, "2\n"}, {0, 2, 2, "3\n"}, {0, 5, 5, "1f\n"}, {0, 1, 32, "00000001\n"},
		{0, 1, 33, "0,00000001\n"}, {32, 33, 36, "1,00000000\n"}, {0, 36, 36, "f,ffffffff\n"}, {0, 64, 64, "ffffffff,ffffffff\n"},
	} {
		if got := cpuMask(test.first, test.end, test.all); got != test.want {
			t.Errorf("cpuMask(%d, %d, %d) = %q, want %q", test.first, test.end, test.all, got, test.want)
		}
	}
	v := mounted(t)
	for _, name := range []string{"thread_siblings", "core_siblings", "core_cpus", "package_cpus"} {
		if mask := text(t, v, "/sys/devices/system/cpu/cpu0/topology/"+name); strings.Trim(mask, "0,\n") == "" {
			t.Errorf("%s = %q, want a set with CPU 0", name, mask)
		}
	}
}

// A setting in /proc/sys checks the access mode of the descriptor, and then the user, at each write.
func TestWriteAsAnother(t *testing.T) {
	v := fs.NewView(fs.NewTree(Proc(Process{PID: 1, Sysctls: map[string]Setting{"sys/fs/x": {
		Text: func() string { return "1\n" }, Set: func(text string, _ int64) (int, error) { return len(text), nil },
	}}})))
	for _, test := range []struct {
		flags fs.Flags
		uid   uint32
		want  error
	}{
		{fs.ReadOnly, 0, linux.EBADF}, {fs.ReadOnly, 1000, linux.EBADF}, {fs.WriteOnly, 1000, linux.EPERM}, {fs.WriteOnly, 0, nil},
	} {
		f, err := v.Open(v.Root, "/sys/fs/x", test.flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.MayWriteAs(&fs.Credentials{UID: test.uid}); err != test.want {
			t.Errorf("flags %x, user %d: %v, want %v", test.flags, test.uid, err, test.want)
		}
		f.Close()
	}
}

// A disk is listed in /proc/partitions and in /sys/block, and links lead to its directory.
func TestDisks(t *testing.T) {
	state := DiskState{Size: 5 << 20, Logical: 512, Physical: 4096, ReadOnly: true}
	p := Process{Hostname: func() string { return "" }, Disks: []Disk{{"vda", fs.Device{Major: 254, Minor: 16}, func() (DiskState, bool) { return state, true }, func() DiskCounts { return DiskCounts{Fields: "1 0 8 2"} }}}}
	if want := "major minor  #blocks  name\n\n 254       16       5120 vda\n"; p.partitions() != want {
		t.Errorf("partitions: %q, want %q", p.partitions(), want)
	}
	if want := " 254      16 vda 1 0 8 2\n"; p.diskStats() != want {
		t.Errorf("diskstats: %q, want %q", p.diskStats(), want)
	}
	p.Disks = append(p.Disks, Disk{Name: "nvme0n1", Number: fs.Device{Major: 259}}, Disk{Name: "sda", Number: fs.Device{Major: 8}}, Disk{Name: "vdb", Number: fs.Device{Major: 254, Minor: 32}})
	const characters = "Character devices:\n  1 mem\n  5 /dev/tty\n  5 /dev/console\n  5 /dev/ptmx\n136 pts\n\nBlock devices:\n"
	if want := characters + "  8 sd\n254 virtblk\n259 blkext\n"; p.drivers() != want {
		t.Errorf("devices: %q, want %q", p.drivers(), want)
	}
	p.Disks = p.Disks[:1]
	f := New(SysMagic)
	p.disks(f)
	v := fs.NewView(fs.NewTree(f))
	for path, want := range map[string]string{
		"/dev/block/254:16/size": "10240\n", "/class/block/vda/ro": "1\n", "/block/vda/dev": "254:16\n", "/block/vda/stat": "1 0 8 2\n", "/block/vda/removable": "0\n",
		"/block/vda/queue/physical_block_size": "4096\n", "/block/vda/uevent": "MAJOR=254\nMINOR=16\nDEVNAME=vda\nDEVTYPE=disk\n",
	} {
		if b, err := iofs.ReadFile(v.IO(), path[1:]); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v, want %q", path, b, err, want)
		}
	}
	if text := (&Process{}).partitions(); text != "" {
		t.Errorf("without disks: %q", text)
	}
}
