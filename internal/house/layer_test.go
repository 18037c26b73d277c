package house

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The map of the tree: which package may import which. Form and purpose are the same as for the map in
// Go's go/build/deps_test.go:
//
//	a, b < c, d < e;
//
// means that c and d may import a, b and everything that a and b may import; e may import c, d and
// everything below them. NONE means no package of this module. A name in capitals is a set of packages:
// every package above the set may import them. "a !< b" is an assertion about the map: b can never
// import a, not even indirectly.
//
// DO NOT CHANGE THIS MAP TO MAKE A BUILD PASS. An import that it forbids is nearly always code in the
// wrong place. If the map is wrong, change it in a commit of its own and record the reason in
// docs/decisions.
//
// Tests may import any package.
const layers = `
	# Formats, a keyed hash, a list, and names for counters.
	NONE < wire, internal/siphash, internal/list, internal/counter;

	# Linux's numbers and layouts, each defined once: for all that is linked into a guest.
	NONE < abi/linux < fs, fs/ninep/ring, mem, exec, task/family, task/signal, driver, kernel, posix, unikernel/channel, unikernel/seal;

	# Goroutines of one owner.
	NONE < internal/crew < stack, link/fd, link/virtionet, link/e1000e, driver/power, driver/virtio, block/controller, block/relay, block/fault, block/file, block/ahci, fs/ninep;

	# Protocol machines: one package each, pure (pure_test.go). The timing wheel
	# stands below the others; beyond that none of them knows another.
	NONE < stack/timer;
	NONE < stack/tcp/sequence < stack/tcp/congestion, stack/tcp/ranges;
	internal/list < stack/plpmtud;
	wire, internal/siphash, internal/list, stack/timer, stack/tcp/congestion, stack/tcp/ranges, stack/plpmtud
	< stack/tcp, stack/neigh, stack/ip, stack/icmp, stack/autoconf, stack/dhcp,
	  stack/group, stack/port
	< MACHINES;

	# The byte rings between a program and its connection: a leaf with a mutex,
	# so not a machine.
	NONE < stack/ring;

	# Errors of sockets, and waiting with a deadline.
	NONE < stack/socket;

	# Devices.
	wire < link < link/ring, link/fd, link/offload;
	wire < link/match;
	link/ring < link/relay;
	link/relay, link/ring, link/fd, link/offload
	< link/pipe, link/loop, link/tap, link/unixsock,
	  link/trace, link/fault, link/shape, link/linktest,
	  link/afpacket
	< DEVICES;
	link/match < link/filter;
	link/fd, link/filter < link/afxdp < DEVICES;
	link/filter < link/tc;
	NONE < internal/race, internal/leak < link/linktest;

	# The stack sees link.Device and no certain device, but for its own loopback.
	link < stack/queue;
	wire, internal/siphash < stack/fastopen;
	stack/icmp, link, internal/siphash < stack/flood;
	stack/autoconf, stack/dhcp < stack/configure;
	stack/port, stack/ip, stack/icmp, stack/socket, stack/plpmtud, internal/siphash < stack/shared;
	stack/shared < stack/demux;
	MACHINES, stack/ring, stack/queue, stack/socket, stack/flood, stack/fastopen, stack/configure, stack/shared, stack/demux, link/loop, internal/counter < stack;

	# The gateway faces a guest with a stack of its own, and says to a program of the
	# same host which connections it hands over.
	NONE < usernet/hand;
	stack, DEVICES, usernet/hand < usernet;

	# The virtual file system, the file systems under it, and what judges them.
	abi/linux < fs/acl < fs; # access control lists: pure
	fs/acl < fs/memfs;
	NONE < fs < fs/memfs, fs/pseudo, fs/devpts, fs/fstest, fs/ninep;
	abi/linux < fs/ninep/ring; # memory that client and server share
	NONE < fs/ninep/ring/ringtest;
	fs/ninep, fs/ninep/ring < fs/ninep/server; # in the loam command
	fs/memfs < fs/tarfs;
	NONE < fs/ext4/disk < fs/ext4/journal;

	# User memory: pages, objects, maps and the page cache. They know no processor.
	NONE < mem < mem/memtest;
	mem < mem/cache;
	NONE < internal/machinecode; # an assembler
	internal/machinecode < exec/vdso; # the kernel writes the clocks into its page
	NONE < task/futex, task/family, task/attention; # state of processes: pure
	abi/linux < task/sysv; # System V's IPC: pure
	mem < exec; # programs: ELF, scripts, the initial stack
	NONE < exec/library; # of the host: which libraries a program needs
	NONE < mem/pressure; # which process is killed

	# Block devices, and the file system on them.
	NONE < block < block/memory;
	block < block/relay < block/trace, block/snapshot;
	block < block/fault, block/file;
	NONE < fs/ext4/span;
	NONE < fs/ext4/blockmap;
	abi/linux, fs < fs/ext4/lookup;
	abi/linux, fs, fs/acl, fs/ext4/disk < fs/ext4/xattr;
	fs, fs/acl, block, fs/ext4/disk, fs/ext4/journal, fs/ext4/blockmap, fs/ext4/span, fs/ext4/lookup, fs/ext4/xattr < fs/ext4;
	block, fs/ext4/disk, fs/ext4/journal < fs/ext4/format;
	fs/ext4, fs/ext4/format, block/file < fs/imagefile; # images in files of the host

	# The personality, and what joins it to a Go program.
	link < unikernel/guest;
	NONE < posix/bpf; # socket filters
	abi/linux < posix/terminal; # the line discipline of terminals: pure
	abi/linux < posix/credential; # user IDs and capabilities
	fs < posix/file; # the core: descriptions, descriptor tables, waiting
	posix/file, stack < posix/socket;
	posix/socket < posix/netdevice < posix/netlink < FAMILIES;
	posix/socket < posix/unix < FAMILIES;
	posix/netdevice, posix/bpf, posix/credential < posix/inet < posix/handed, posix/packet, posix/procnet < FAMILIES;
	posix/procnet, posix/netlink, posix/unix < posix/sockdiag < FAMILIES; # lists of sockets
	posix/file < posix/epoll, posix/mqueue, posix/pipe, posix/event, posix/timer, posix/lock, posix/mapping < FAMILIES;
	posix/file, fs/devpts, posix/terminal < posix/tty < FAMILIES;
	FAMILIES, stack, DEVICES, fs/memfs, posix/credential < posix < posix/call < unikernel/rt;
	NONE < unikernel/complaint < unikernel/rt, unikernel; # what an operator should know
	unikernel/guest, usernet/hand, fs/pseudo, fs/tarfs, fs/ext4, fs/ninep, fs/ninep/ring, block/file, block/snapshot < unikernel/rt;
	unikernel/rt < unikernel/rt/process;
	fs < unikernel/channel;

	# Ring 0: the processor, how a guest is loaded, and the core under the runtime.
	NONE < boot < boot/acpi;
	NONE < arch/amd64, kernel/page, kernel/space, kernel/thread, kernel/timekeeper;
	boot/acpi, arch/amd64, kernel/page, kernel/space, kernel/thread, kernel/timekeeper < kernel;
	arch/amd64 < kernel/signal < kernel;
	abi/linux < kernel/limit < kernel;
	exec/vdso < kernel;
	NONE < unikernel/linked; # what the Go linker made
	NONE < unikernel/filled < unikernel; # folders of the cache
	kernel < kernel/user;
	posix, exec, mem/cache < task/mapped;
	mem < task/account;
	mem, posix/credential < task/limit;
	fs, exec, posix/credential, posix/event, task/account, task/family < task/procfs; # /proc/PID
	abi/linux, arch/amd64, mem < task/machine;
	task/machine, task/signal < task/frame;
	abi/linux, arch/amd64, mem, task/signal < task/trap;
	task/machine, task/signal, task/family, mem, posix/call < task/trace;
	mem, mem/pressure < task/shortage;
	posix/call < task/schedule, task/spawn;
	posix/call, mem < task/privilege;
	posix/call, mem < task/vector;
	posix, mem, task/signal < task/core; # core dumps
	posix/call, mem < task/mount; # mount(2), fsopen(2)
	posix, mem, task/sysv, task/family, task/core < task/setting; # files of /proc/sys that root may write
	posix/call, posix/bpf, arch/amd64, task/signal < task/seccomp;
	posix/call, task/signal < task/clone;
	posix/call, task/signal, task/family, task/account < task/wait;
	posix/call, mem, task/machine < task/rseq;
	posix/call, mem, task/futex < task/futexcall;
	posix/call, task/sysv, mem < task/ipc;
	posix/call, posix/bpf, exec, exec/vdso, mem/cache, mem/pressure, arch/amd64, task/signal, task/family, task/clone, task/wait, task/rseq, task/futexcall, task/ipc, task/privilege, task/mapped, task/seccomp, task/schedule, task/vector, task/account, task/limit, task/frame, task/trace, task/trap, task/spawn, task/procfs, task/core, task/mount, task/setting, task/shortage, task/attention < task; # processes of Linux programs
	task, task/procfs, kernel/user, unikernel/channel, unikernel/rt < unikernel/rt/ring3;
	unikernel/rt/ring3 < unikernel/rt/children; # a Go program starts others
	arch/amd64, boot, unikernel/linked < unikernel/image;
	arch/amd64, boot, internal/machinecode < unikernel/image/efi; # an application of UEFI firmware
	NONE < unikernel/media; # disks and CDs that firmware boots

	# Drivers know the machine by a contract only, which the kernel keeps.
	NONE < driver;
	driver, kernel < kernel/device;
	boot/acpi, driver < driver/pci, driver/power;
	driver/pci < driver/virtio < driver/rng, driver/console;
	driver/virtio < driver/virtio/model < driver/qtest; # machines for tests
	driver/virtio, link < link/virtionet < DEVICES;
	driver/pci, link < link/e1000e;
	driver/virtio/model < link/e1000e/model; # for tests

	# Drivers of storage, and the suite that all block devices pass.
	block, internal/race, internal/leak < block/blocktest;
	block, driver < block/controller;
	block/trace, block/memory < block/crash;
	block/controller, driver/virtio < block/virtioblk;
	block/controller, driver/pci < block/nvme, block/ahci;
	driver/virtio/model < block/nvme/model, block/ahci/model; # for tests

	# Making and running images: on a host, beside the guest.
	NONE < .; # the sources of what is linked into a guest, for a loam without a checkout
	NONE < unikernel/overlay;
	NONE < unikernel/seal; # which calls of the host's are left to a process
	unikernel/seal < unikernel/sandbox;
	fs/memfs, fs/tarfs < unikernel/rootfs;
	exec, exec/library < unikernel/needed; # files of the host that a program of the host needs
	NONE < unikernel/results; # files of a test binary for go test
	unikernel/channel, ., unikernel/rootfs, unikernel/overlay, unikernel/sandbox, unikernel/image, unikernel/image/efi, unikernel/media, unikernel/results, unikernel/rt, usernet, exec/library, unikernel/needed, fs/ninep/server, fs/imagefile < unikernel;
	kernel/device, driver/power, block/virtioblk, block/nvme, block/ahci, driver/console, driver/rng, link/virtionet, link/e1000e, unikernel/channel, unikernel/rt < unikernel/rt/machine;
	unikernel < unikernel/cost;
	NONE < unikernel/registry; # the list of running guests
	NONE < unikernel/detach; # a command that continues in the background

	# The packet engine: methods to send by, and what drives them. Nothing below
	# knows of it.
	NONE < gen/hwtime;
	stack, DEVICES, link/match, link/tc, gen/hwtime < gen/method;
	wire < gen/frame < gen/pace;
	wire < gen/measure;
	NONE < gen/probe/target;
	gen/method, gen/probe/target, internal/siphash < gen/probe;
	gen/method < gen/nexthop;
	NONE < gen/guard;
	NONE < internal/chart < gen/show;
	gen/probe, gen/nexthop, gen/guard < gen/probe/session;
	gen/method, gen/measure < gen/sink;
	gen/nexthop, gen/pace, gen/sink, gen/guard < gen < gen/show < gen/bench;
	gen < gen/plan, gen/replay;
	gen/show < gen/rfc2544, gen/control;

	# The tool.
	NONE < internal/machine;
	unikernel/cost, unikernel/registry, unikernel/detach, internal/machine, gen/bench, gen/control, gen/plan, gen/replay, gen/rfc2544, gen/probe/session < cmd/loam;

	# Programs that know nothing of Loam.
	NONE < examples/web, examples/echo, unikernel/cost/calls;

	# What runs the tests, and keeps the rules.
	NONE < internal/house/references;
	NONE < internal/house/english < internal/house, internal/house/sample;
	NONE < internal/netns;
	NONE < internal/freeport;
	NONE < internal/debian < internal/ci;
	NONE < internal/debian/first;
	NONE < test/docs, test/interop, test/servers, test/daemons, test/gen, test/genbench, test/probebench, test/folders, test/folders/tree, test/folders/calls;
	internal/debian < test/suites;
	NONE < test/std, test/differences;
	NONE < test/kvm/report, test/kvm/work < test/kvm/first, test/kvm/program;
	internal/debian/first < test/kvm/first;
	NONE < test/kvm;
	NONE < test/processes/micro, test/processes/files;
	internal/debian/first < test/processes/first;
	internal/debian, unikernel, exec/library < test/processes;
	NONE < test/pgo, test/pgo/program;

	# The same stack runs on Linux, in fake time and in ring 0.
	link !< wire, MACHINES;
	posix, unikernel !< stack, DEVICES;
	link/pipe, link/tap, link/unixsock, link/trace, link/fault, link/shape !< stack;
`

// modules lists the packages that may import modules other than this one, and which. No package that is
// linked into a guest is in the list: the source of a guest is in this tree or in Go's.
var modules = map[string][]string{
	"cmd/loam":          {"github.com/spf13/cobra", "github.com/spf13/pflag"},
	"gen":               {"github.com/vishvananda/netlink", "golang.org/x/sys/unix"},
	"gen/bench":         {"github.com/vishvananda/netlink", "golang.org/x/sys/unix", "gonum.org/v1/plot"},
	"gen/measure":       {"github.com/HdrHistogram/hdrhistogram-go"},
	"gen/hwtime":        {"golang.org/x/sys/unix"},
	"gen/method":        {"golang.org/x/sys/unix"},
	"gen/nexthop":       {"github.com/vishvananda/netlink"},
	"gen/probe/session": {"github.com/vishvananda/netlink"},
	"gen/pace":          {"github.com/HdrHistogram/hdrhistogram-go"},
	"gen/plan":          {"github.com/goccy/go-yaml"},
	"gen/replay":        {"github.com/gopacket/gopacket"},
	"gen/show":          {"charm.land/bubbletea/v2", "github.com/prometheus/client_golang", "gonum.org/v1/plot"},
	"gen/sink":          {"github.com/HdrHistogram/hdrhistogram-go"},

	"fs/ninep/server":    {"golang.org/x/sys/unix"}, // part of the loam command, not of a guest
	"internal/chart":     {"gonum.org/v1/plot"},
	"internal/netns":     {"golang.org/x/sys/unix"},
	"unikernel/detach":   {"golang.org/x/sys/unix"}, // part of the loam command, not of a guest
	"unikernel/registry": {"golang.org/x/sys/unix"}, // part of the loam command, not of a guest
	"unikernel/rootfs":   {"github.com/klauspost/compress/zstd"},
	"unikernel/sandbox":  {"golang.org/x/sys/unix"}, // part of the loam command, not of a guest

	// Packages for devices of the host. They are not part of a guest.
	"internal/debian/first": {"golang.org/x/sys/unix"},
	"test/kvm/first":        {"golang.org/x/sys/unix"},
	"test/processes/first":  {"golang.org/x/sys/unix"},
	"test/folders/calls":    {"golang.org/x/sys/unix"}, // runs on the host only
	"link/afpacket":         {"golang.org/x/sys/unix"},
	"link/afxdp":            {"github.com/cilium/ebpf", "golang.org/x/sys/unix"},
	"link/filter":           {"github.com/cilium/ebpf"},
	"link/tc":               {"github.com/cilium/ebpf", "golang.org/x/sys/unix"},
}

func TestLayers(t *testing.T) {
	m, err := parseLayers(layers)
	if err != nil {
		t.Fatal(err)
	}
	report(t, m.check(packages(t), modules))
}

// layerMap is the parsed table of packages and the packages that each may import.
type layerMap struct {
	below map[string]map[string]bool // name -> names that may be imported directly
	never [][2]string                // {a, b}: b may never import a, directly or indirectly
}

func parseLayers(text string) (*layerMap, error) {
	m := &layerMap{below: map[string]map[string]bool{}}
	var lines []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		lines = append(lines, line)
	}
	for rule := range strings.SplitSeq(strings.Join(lines, " "), ";") {
		if rule = strings.TrimSpace(rule); rule == "" {
			continue
		}
		if what, whom, ok := strings.Cut(rule, "!<"); ok {
			for _, a := range names(what) {
				for _, b := range names(whom) {
					m.never = append(m.never, [2]string{a, b})
				}
			}
			continue
		}
		if err := m.add(rule); err != nil {
			return nil, err
		}
	}
	return m, m.keepPromises()
}

func names(list string) []string {
	var all []string
	for name := range strings.SplitSeq(list, ",") {
		all = append(all, strings.TrimSpace(name))
	}
	return all
}

// add adds one rule "a, b < c < d". The names on the left must be defined by earlier rules. So the map is written
// from the bottom up and has no cycles.
func (m *layerMap) add(rule string) error {
	steps := strings.Split(rule, "<")
	if len(steps) < 2 {
		return fmt.Errorf("rule %q has no <", rule)
	}
	lower := names(steps[0])
	for _, name := range lower {
		if name != "NONE" && m.below[name] == nil {
			return fmt.Errorf("rule %q: %q stands on nothing yet", rule, name)
		}
	}
	for _, step := range steps[1:] {
		upper := names(step)
		for _, name := range upper {
			if m.below[name] == nil {
				m.below[name] = map[string]bool{}
			}
			for _, l := range lower {
				m.below[name][l] = true
			}
		}
		lower = upper
	}
	return nil
}

// mayImport returns all names below name, at any depth.
func (m *layerMap) mayImport(name string) map[string]bool {
	all := map[string]bool{}
	var walk func(string)
	walk = func(n string) {
		for l := range m.below[n] {
			if !all[l] {
				all[l] = true
				walk(l)
			}
		}
	}
	walk(name)
	return all
}

// members returns the packages of a set, or the package itself if name is a package.
func (m *layerMap) members(name string) []string {
	if name != strings.ToUpper(name) {
		return []string{name}
	}
	var all []string
	for l := range m.below[name] {
		all = append(all, m.members(l)...)
	}
	return all
}

func (m *layerMap) keepPromises() error {
	for _, n := range m.never {
		for _, what := range m.members(n[0]) {
			for _, whom := range m.members(n[1]) {
				if m.mayImport(whom)[what] {
					return fmt.Errorf("the map lets %s import %s, and promises that it never may", whom, what)
				}
			}
		}
	}
	return nil
}

func (m *layerMap) check(pkgs []goPackage, modules map[string][]string) (complaints []string) {
	for _, p := range pkgs {
		if m.below[p.Path] == nil {
			complaints = append(complaints, fmt.Sprintf(
				"package %s is not on the map: add it to internal/house/layer_test.go where it belongs", p.Path))
			continue
		}
		may := m.mayImport(p.Path)
		for _, imp := range p.Imports {
			if ours, ok := strings.CutPrefix(imp, "./"); ok {
				if !may[ours] {
					complaints = append(complaints, fmt.Sprintf("%s imports %s: the map does not let it", p.Path, ours))
				}
			} else if !isStandard(imp) && !allowedModule(modules[p.Path], imp) {
				complaints = append(complaints, fmt.Sprintf("%s imports %s: only the standard library and Loam are linked here", p.Path, imp))
			}
		}
	}
	return complaints
}

// isStandard reports whether an import path outside this module belongs to the standard library: its
// first element has no dot.
func isStandard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

func allowedModule(allowed []string, imp string) bool {
	return slices.ContainsFunc(allowed, func(m string) bool {
		return imp == m || strings.HasPrefix(imp, m+"/")
	})
}

func TestLayersComplain(t *testing.T) {
	const text = `
		NONE < a, b;   # two leaves
		a < SET < c;
		b !< c;
	`
	m, err := parseLayers(text)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string][]string{"b": {"example.org/m"}}
	for _, test := range []struct {
		pkg, imp, want string
	}{
		{"c", "./a", ""},
		{"c", "./b", "c imports b: the map does not let it"},
		{"a", "./c", "a imports c: the map does not let it"},
		{"a", "net/netip", ""},
		{"b", "example.org/m/sub", ""},
		{"b", "example.org/mm", "b imports example.org/mm: only the standard library and Loam are linked here"},
		{"a", "example.org/m", "a imports example.org/m: only the standard library and Loam are linked here"},
		{"d", "./a", "package d is not on the map: add it to internal/house/layer_test.go where it belongs"},
	} {
		got := m.check([]goPackage{{Path: test.pkg, Imports: []string{test.imp}}}, allowed)
		if strings.Join(got, "; ") != test.want {
			t.Errorf("%s imports %s: got %q, want %q", test.pkg, test.imp, got, test.want)
		}
	}
	for text, want := range map[string]string{
		"NONE < a; a < b; a !< b;":      "the map lets b import a, and promises that it never may",
		"b < a;":                        `rule "b < a": "b" stands on nothing yet`,
		"NONE < a; a;":                  `rule "a" has no <`,
		"NONE < a < S < b; a !< b, S; ": "the map lets b import a, and promises that it never may",
	} {
		if _, err := parseLayers(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
