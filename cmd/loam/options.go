package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"loam/unikernel"
	"loam/usernet"
)

// The flags of "loam run", most of which also apply to "loam test". All checks that need neither a build nor a run are
// made in this file.

// runFlags are the flags as given by the user.
type runFlags struct {
	platform string
	memory   string
	cpus     int
	machine  string
	nic      string
	disks    []string
	diskSize string
	option   string
	publish  []string
	relay    bool
	volumes  []string
	root     string
	folder   string
	tty      choice

	entrypoint optional

	name   string
	named  bool // --name was given
	detach bool

	user     string
	net      string
	loopback bool
	ips      []string
	gateways []string
	env      []string
	pcap     string
	keepRoot bool
	source   string
}

func (f *runFlags) register(cmd *cobra.Command) {
	f.registerShared(cmd, runMemory)
	f.registerGuest(cmd)
	cmd.Flags().StringArrayVar(&f.disks, "disk", nil, "give the program a disk, the image `FILE[:/DIR][:ro|:snapshot]`: its ext4 file system is mounted at /DIR, or without /DIR the disk is /dev/vda; in a virtual machine, nvme:FILE is /dev/nvme0n1 and ahci:FILE is /dev/sda (repeat for more)")
	cmd.Flags().StringVar(&f.diskSize, "disk-size", "", "create images of --disk that do not exist, with this `SIZE` in M or G")
	cmd.Flags().StringVarP(&f.option, "option", "o", "", "for all disks and for a root that is an image, `ro|snapshot`: they are never written, or changes are kept in memory until the program ends")
	cmd.Flags().StringArrayVarP(&f.publish, "publish", "p", nil, "forward a port to the program, `HOST:GUEST[/udp]`; HOST is PORT, on 127.0.0.1 and ::1, or ADDRESS:PORT (repeat for more)")
	cmd.Flags().BoolVar(&f.relay, "relay", false, "for a process: pass connections to published ports through Loam's TCP; without this flag, Linux's TCP serves them")
	cmd.Flags().StringArrayVarP(&f.volumes, "volume", "v", nil, "give the program a read-only copy of a folder or a file, `HOST[:GUEST][:rw]`; GUEST is an absolute path (default: the path of HOST); with :rw, the folder itself, which the program can write (docs/folders.md; repeat for more)")
	cmd.Flags().StringVar(&f.root, "root", "", "run the Linux program COMMAND inside `DIR[:rw]|FILE.tar[.gz|.zst]|IMAGE[:TAG]`: a copy of a folder or archive, or of the image of a container, or an image of ext4 itself, is its root folder; with :rw, the folder itself (docs/folders.md)")
	cmd.Flags().Var(&f.entrypoint, "entrypoint", "with --root and an image of a container, start `PROGRAM` with the arguments, and not the image's Entrypoint; empty: start COMMAND itself")
	cmd.Flags().StringVarP(&f.folder, "workdir", "w", "", "the program's working folder, `DIR`, an absolute path (default: the current one; with --root, that of the image, or /)")
	cmd.Flags().VarP(&f.tty, "tty", "t", "give a Linux program a terminal of its own, with job control, which is connected to this one (default: if standard input and output are a terminal)")
	cmd.Flags().Lookup("tty").NoOptDefVal = "true"
	cmd.Flags().StringVarP(&f.user, "user", "u", "", "run a Linux program as a user, `USER[:GROUP]`, names of its root folder or numbers (default: that of the image, or root)")
}

// optional is a text flag that distinguishes an empty text from no text.
type optional struct{ value *string }

// String implements pflag.Value.
func (o *optional) String() string {
	if o.value == nil {
		return ""
	}
	return *o.value
}

// Set implements pflag.Value.
func (o *optional) Set(s string) error {
	o.value = &s
	return nil
}

// Type implements pflag.Value.
func (o *optional) Type() string { return "string" }

// choice is a boolean flag with three states: not given, true and false.
type choice struct {
	unikernel.TerminalUse
}

// String implements pflag.Value.
func (c *choice) String() string {
	return map[unikernel.TerminalUse]string{unikernel.OwnTerminal: "true", unikernel.NoTerminal: "false"}[c.TerminalUse]
}

// Set implements pflag.Value.
func (c *choice) Set(s string) error {
	on, err := strconv.ParseBool(s)
	c.TerminalUse = unikernel.NoTerminal
	if on {
		c.TerminalUse = unikernel.OwnTerminal
	}
	return err
}

// Type implements pflag.Value. It returns "bool", for which pflag accepts the flag without a value.
func (c *choice) Type() string { return "bool" }

// Default memory of a virtual machine for programs, and for tests, which need more.
const (
	runMemory  = "256M"
	testMemory = "1G"
)

// registerShared registers the flags that also apply to tests. memory is the default of --memory.
func (f *runFlags) registerShared(cmd *cobra.Command, memory string) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.platform, "platform", platformAuto, "environment of the program, `auto|vm|process`; vm is a virtual machine of QEMU, which auto chooses if QEMU is installed")
	flags.StringVarP(&f.memory, "memory", "m", memory, "the memory of a virtual machine, `SIZE` in M or G")
	flags.IntVar(&f.cpus, "cpus", 1, "the CPUs of a virtual machine, `N`")
	flags.StringVar(&f.machine, "machine", "q35", "machine type of QEMU, `q35|pc|microvm`")
	flags.StringVar(&f.nic, "nic", unikernel.CardVirtio, "the network card of a virtual machine, `virtio|e1000e|e1000`; the last two are models of Intel's")
	flags.StringVar(&f.net, "net", "user", "the network, `user|tap:NAME|none`; user needs no privilege")
	flags.BoolVar(&f.loopback, "host-loopback", false, "let the program reach servers on this host's own 127.0.0.1 and ::1, by the name host.loam.internal")
	flags.StringSliceVar(&f.ips, "ip", nil, "with --net tap:NAME, the program's address and prefix, `CIDR`, one each of IPv4 and IPv6 (default: addresses from DHCP and IPv6 routers)")
	flags.StringSliceVar(&f.gateways, "gw", nil, "with --ip, the router's address, `IP`, one each of IPv4 and IPv6")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "set a variable of the program's environment, `KEY=VALUE` (repeat for more)")
	flags.StringVar(&f.pcap, "pcap", "", "write every packet of the program to `FILE`, for Wireshark")
	flags.BoolVar(&f.keepRoot, "keep-root", false, "if root runs loam: run the program, or QEMU, as root instead of user 65534")
	flags.StringVar(&f.source, "source", "", "link Loam's packages from the checkout in `DIR` instead of the copy in this command")
}

// shared returns a command line with the flags of registerShared.
func (f *runFlags) shared() []string {
	args := []string{
		"--platform=" + f.platform, "--memory=" + f.memory, "--cpus=" + strconv.Itoa(f.cpus), "--machine=" + f.machine, "--nic=" + f.nic,
		"--net=" + f.net, "--pcap=" + f.pcap, "--host-loopback=" + strconv.FormatBool(f.loopback),
		"--keep-root=" + strconv.FormatBool(f.keepRoot),
	}
	for _, ip := range f.ips {
		args = append(args, "--ip="+ip)
	}
	for _, gw := range f.gateways {
		args = append(args, "--gw="+gw)
	}
	for _, kv := range f.env {
		args = append(args, "--env="+kv)
	}
	return args
}

// volume is a file or folder of the host that the program sees.
type volume struct {
	host, guest string
	writable    bool // the program can read and write the host's folder itself; otherwise it gets a copy
	noCache     bool // for a writable folder: see unikernel.Shared
}

// options checks the flags and converts them to unikernel.Options, except for the platform (withPlatform). Errors are
// usageErrors.
func (f *runFlags) options(program string, args []string) (unikernel.Options, error) {
	o := unikernel.Options{
		Target: unikernel.Target{Source: f.source},
		Args:   args, Env: f.env, Entrypoint: f.entrypoint.value, Folder: f.folder, User: f.user, Terminal: f.tty.TerminalUse, KeepRoot: f.keepRoot,
	}
	if program != "" {
		o.Target.Args = []string{program}
	}
	switch f.platform {
	case platformAuto, platformVM, platformProcess:
	default:
		return o, &usageError{fmt.Sprintf("there is no platform %q", f.platform), "use --platform auto, vm or process"}
	}
	if f.nic != unikernel.CardVirtio {
		o.Machine.Card = f.nic
	}
	var err error
	if f.platform != platformProcess {
		o.Machine.CPUs, o.Machine.Model = f.cpus, f.machine
		if o.Machine.Memory, err = parseSize(f.memory); err != nil {
			return o, err
		}
	}
	if err = f.setDisks(&o); err != nil {
		return o, err
	}
	if o.Network, err = f.network(); err != nil {
		return o, err
	}
	if o.Network.Forwards, err = f.forwards(o.Network.Kind); err != nil {
		return o, err
	}
	volumes, err := parseVolumes(f.volumes)
	if err != nil {
		return o, err
	}
	o.Volumes, o.Shared = packed(volumes), shared(volumes)
	if err := f.setRoot(&o); err != nil {
		return o, err
	}
	if err := f.checkGuest(); err != nil {
		return o, err
	}
	return o, f.checkProgram()
}

// setRoot parses --root DIR:rw. In the name of a container image, rw is a tag. A name that exists is always the root itself,
// even if it ends with a mode.
func (f *runFlags) setRoot(o *unikernel.Options) error {
	o.Root = f.root
	v, dir := volumeMode(f.root)
	if _, err := os.Lstat(f.root); err == nil || !v.writable || !unikernel.IsRootFolder(dir) {
		return nil
	}
	if f.option != "" {
		return &usageError{fmt.Sprintf("-o %s cannot be used with --root %s, which is written", f.option, f.root), "leave out :rw to use a copy, and append :" + f.option + " to each disk"}
	}
	o.Root, o.RootShared, o.RootNoCache = dir, true, v.noCache
	return nil
}

// checkProgram checks the flags that describe how the program starts.
func (f *runFlags) checkProgram() error {
	if f.entrypoint.value != nil && f.root == "" {
		return &usageError{"--entrypoint has no use without --root", "leave it out"}
	}
	if f.folder != "" && !path.IsAbs(f.folder) {
		return &usageError{fmt.Sprintf("-w %s is not an absolute path", f.folder), "write -w /DIR"}
	}
	if user, group, both := strings.Cut(f.user, ":"); f.user != "" && (user == "" || both && group == "") {
		return &usageError{fmt.Sprintf("-u %s names no user", f.user), "write -u USER or -u USER:GROUP, with names or numbers"}
	}
	for _, kv := range f.env {
		if key, _, ok := strings.Cut(kv, "="); !ok || key == "" {
			return &usageError{fmt.Sprintf("-e %s sets nothing", kv), "write -e KEY=VALUE"}
		}
	}
	return nil
}

// setDisks parses --disk, --disk-size and -o.
func (f *runFlags) setDisks(o *unikernel.Options) (err error) {
	switch f.option {
	case "":
	case "ro":
		o.RootReadOnly = true
	case "snapshot":
		o.RootSnapshot = true
	default:
		return &usageError{fmt.Sprintf("there is no option -o %s", f.option), "use -o ro or -o snapshot"}
	}
	if f.option != "" && len(f.disks) == 0 && f.root == "" {
		return &usageError{"-o " + f.option + " has no use without --disk or --root", "leave it out"}
	}
	var size uint64
	if f.diskSize != "" {
		if size, err = parseSizeOf("--disk-size", f.diskSize); err != nil {
			return err
		}
		if len(f.disks) == 0 {
			return &usageError{"--disk-size has no use without --disk", "leave it out"}
		}
	}
	for _, text := range f.disks {
		d, err := unikernel.ParseDisk(text)
		var e *unikernel.Error
		if errors.As(err, &e) {
			return &usageError{e.What, e.Next}
		}
		d.Size = size
		if o.RootReadOnly && d.Snapshot || o.RootSnapshot && d.ReadOnly {
			return &usageError{fmt.Sprintf("--disk %s: ro and snapshot exclude each other", text), "leave out one of them"}
		}
		d.ReadOnly, d.Snapshot = d.ReadOnly || o.RootReadOnly, d.Snapshot || o.RootSnapshot
		o.Disks = append(o.Disks, d)
	}
	return nil
}

// parseVolumes parses HOST[:GUEST][:MODE]. The part after the last colon before the mode is GUEST only if it starts with
// a slash, so HOST may contain colons. MODE is ro, as in other tools, or rw, or rw,cache=none or rw,cache=loose. The
// result is ordered so that a volume inside another comes after it, because it must be mounted later.
func parseVolumes(given []string) (all []volume, err error) {
	taken := map[string]string{}
	for _, s := range given {
		v, rest := volumeMode(s)
		v.host = rest
		if i := strings.LastIndex(rest, ":/"); i > 0 {
			v.host, v.guest = rest[:i], path.Clean(rest[i+1:])
		} else if v.guest, err = filepath.Abs(rest); err != nil {
			return nil, err
		}
		if _, mode, ok := strings.Cut(v.guest, ":rw"); ok {
			return nil, &usageError{fmt.Sprintf("-v %s: there is no mode rw%s", s, mode), "use ro, rw, rw,cache=loose or rw,cache=none"}
		}
		if rest == "" || v.guest == "/" {
			return nil, &usageError{fmt.Sprintf("-v %q is no folder or file, or would be the root", s), "write -v HOST:GUEST, such as ./site:/srv/site"}
		}
		if err := givable(v); err != nil {
			return nil, &usageError{fmt.Sprintf("-v %s: %v", s, err), "write -v HOST:GUEST with a folder or file of the host that can be read"}
		}
		if first, dup := taken[v.guest]; dup {
			return nil, &usageError{fmt.Sprintf("-v %s and -v %s take the same place", first, s), "give one another GUEST"}
		}
		taken[v.guest] = s
		all = append(all, v)
	}
	if err := apart(all, taken); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b volume) int { return strings.Compare(a.guest, b.guest) })
	return all, nil
}

// apart returns an error if a volume lies inside a folder that the program can change. Mounting the inner volume would
// create its mount point in that folder. The mount point would then appear on the host.
func apart(all []volume, given map[string]string) error {
	for _, outer := range all {
		for _, v := range all {
			if outer.writable && strings.HasPrefix(v.guest, outer.guest+"/") {
				return &usageError{fmt.Sprintf("-v %s lies inside -v %s", given[v.guest], given[outer.guest]), "give it a GUEST outside of that folder"}
			}
		}
	}
	return nil
}

// volumeMode removes the mode from the end of a volume.
func volumeMode(s string) (v volume, rest string) {
	for _, m := range []struct {
		suffix string
		volume
	}{
		{":ro", volume{}},
		{":rw", volume{writable: true}},
		{":rw,cache=loose", volume{writable: true}},
		{":rw,cache=none", volume{writable: true, noCache: true}},
	} {
		if rest, ok := strings.CutSuffix(s, m.suffix); ok {
			return m.volume, rest
		}
	}
	return v, s
}

// givable returns an error if a program cannot be given access to a volume.
func givable(v volume) error {
	if !v.writable {
		return packable(v.host)
	}
	st, err := os.Stat(v.host)
	if err != nil {
		return errors.Unwrap(err)
	}
	if !st.IsDir() {
		return errors.New("only a folder can be given with :rw, and this is none: give its folder")
	}
	return nil
}

// packable returns an error if a file or folder of the host cannot be copied into the guest.
func packable(host string) error {
	st, err := os.Stat(host)
	if err != nil {
		return errors.Unwrap(err)
	}
	if !st.IsDir() && !st.Mode().IsRegular() {
		return errors.New("it is neither a folder nor a file, but a device, a socket or a pipe")
	}
	return nil
}

// parseSize parses the value of -m.
func parseSize(s string) (uint64, error) { return parseSizeOf("-m", s) }

// parseSizeOf parses a number of bytes with an optional unit, such as 256M or 2G, as QEMU does. flag is the name of the
// flag, for the error message.
func parseSizeOf(flag, s string) (uint64, error) {
	number, unit := s, uint64(1<<20)
	switch {
	case strings.HasSuffix(s, "M"):
		number = strings.TrimSuffix(s, "M")
	case strings.HasSuffix(s, "G"):
		number, unit = strings.TrimSuffix(s, "G"), 1<<30
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || n == 0 {
		return 0, &usageError{fmt.Sprintf("%s %s is no size", flag, s), "write it as 256M or 2G"}
	}
	return n * unit, nil
}

// network checks and parses --net and the flags that depend on it.
func (f *runFlags) network() (n unikernel.Network, err error) {
	switch name, isTap := strings.CutPrefix(f.net, "tap:"); {
	case isTap:
		n.Kind, n.Tap = unikernel.TapNetwork, name
		if !validDevice(name) {
			return n, &usageError{
				fmt.Sprintf("--net %s names no device", f.net),
				"write --net tap:NAME with a name of 1 to 15 characters, such as tap:loam0",
			}
		}
	case f.net == "user":
		n.Kind = unikernel.UserNetwork
	case f.net == "none":
		n.Kind = unikernel.NoNetwork
	default:
		return n, &usageError{fmt.Sprintf("there is no network %q", f.net), "use --net user, --net tap:NAME or --net none"}
	}
	if n.Kind != unikernel.TapNetwork && len(f.ips)+len(f.gateways) > 0 {
		return n, &usageError{
			"--ip and --gw have no use with --net " + f.net,
			"leave them out, or use --net tap:NAME",
		}
	}
	if n.Kind != unikernel.UserNetwork && f.loopback {
		return n, &usageError{"--host-loopback has no use with --net " + f.net, "leave it out, or use --net user"}
	}
	n.Trace, n.Relay, n.HostLoopback = f.pcap, f.relay, f.loopback
	return n, addresses(&n, f.ips, f.gateways)
}

// addresses parses the values of --ip and --gw, at most one each for IPv4 and IPv6.
func addresses(n *unikernel.Network, ips, gateways []string) error {
	for _, s := range ips {
		p, err := parseAddress(s)
		if err != nil {
			return err
		}
		own := &n.Address
		if p.Addr().Is6() {
			own = &n.Address6
		}
		if own.IsValid() {
			return &usageError{fmt.Sprintf("--ip %s and --ip %s are of one version of IP", own, p), "give one address of IPv4, one of IPv6, or both"}
		}
		*own = p
	}
	for _, s := range gateways {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" || a.Is4In6() {
			return &usageError{fmt.Sprintf("--gw %s is no address", s), "write it as 192.0.2.1 or fe80::1"}
		}
		own, gateway := n.Address, &n.Gateway
		if a.Is6() {
			own, gateway = n.Address6, &n.Gateway6
		}
		if err := checkGateway(a, own, *gateway); err != nil {
			return err
		}
		*gateway = a
	}
	return nil
}

// validDevice reports whether a name is valid for a network device. It applies the rules of dev_valid_name of Linux
// (net/core/dev.c): 1 to 15 bytes without slash, colon or space, and not "." or "..". It also rejects the percent sign,
// which would make Linux choose a number.
func validDevice(name string) bool {
	return name != "" && len(name) < 16 && name != "." && name != ".." && !strings.ContainsAny(name, "/:% \t\n\v\f\r")
}

// parseAddress parses an address with its prefix length. The address must be one that a host can have.
func parseAddress(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	a := p.Addr()
	switch {
	case err != nil || a.Is4In6():
		return p, &usageError{fmt.Sprintf("--ip %s is no address with a prefix", s), "write it as 192.0.2.2/24 or 2001:db8::2/64"}
	case a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return p, &usageError{fmt.Sprintf("--ip %s cannot be the address of a host", s), "use one that belongs to the network behind the device"}
	case a.Is4() && p.Bits() < 31 && (a == p.Masked().Addr() || a == broadcast(p)):
		return p, &usageError{fmt.Sprintf("--ip %s is the first or last address of its network", s), "use one in between"}
	}
	return p, nil
}

// broadcast returns the last address of an IPv4 network.
func broadcast(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(b)
}

// checkGateway rejects a router outside the network of the program's address (the
// parameter own), and a second router of the same IP version.
func checkGateway(a netip.Addr, own netip.Prefix, other netip.Addr) error {
	switch {
	case !own.IsValid():
		return &usageError{fmt.Sprintf("--gw %s needs --ip", a), "give the program's own address of that version too, or leave both out for DHCP and routers"}
	case other.IsValid():
		return &usageError{fmt.Sprintf("--gw %s and --gw %s are of one version of IP", other, a), "give one router for each"}
	case !own.Contains(a) && !(a.Is6() && a.IsLinkLocalUnicast()) || a == own.Addr():
		return &usageError{
			fmt.Sprintf("--gw %s is not a neighbour of --ip %s", a, own),
			"use the address of the router in " + own.Masked().String(),
		}
	}
	return nil
}

// forwards parses the values of -p. It returns an error if two values use the same port of the host.
func (f *runFlags) forwards(kind unikernel.NetworkKind) ([]usernet.Forward, error) {
	if len(f.publish) > 0 && kind != unikernel.UserNetwork {
		return nil, &usageError{
			fmt.Sprintf("-p has no use with --net %s", f.net),
			"leave it out: only --net user has a gateway that forwards ports",
		}
	}
	type place struct {
		proto string
		host  netip.AddrPort
	}
	var all []usernet.Forward
	taken := map[place]string{}
	for _, s := range f.publish {
		p, ok := parseForward(s)
		if !ok {
			return nil, &usageError{
				fmt.Sprintf("-p %s is no pair of ports", s),
				"write -p HOST:GUEST, such as 8080:80, 53:53/udp or 0.0.0.0:8080:80",
			}
		}
		at := place{p.Proto, p.Host}
		if !p.Host.Addr().IsValid() {
			at.host = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), p.Host.Port())
		}
		if first, dup := taken[at]; dup {
			return nil, &usageError{fmt.Sprintf("-p %s and -p %s take the same port of the host", first, s), "use another one"}
		}
		taken[at] = s
		all = append(all, p)
	}
	return all, nil
}

// parseForward parses [ADDRESS:]PORT:PORT[/tcp|/udp]. An IPv6 address is written in brackets. Without an address,
// only programs on the host can connect to the port.
func parseForward(s string) (p usernet.Forward, ok bool) {
	s, proto, given := strings.Cut(s, "/")
	if given && proto != "tcp" && proto != "udp" {
		return p, false
	}
	p.Proto = "tcp"
	if given {
		p.Proto = proto
	}
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return p, false
	}
	port, ok := parsePort(s[i+1:])
	if !ok {
		return p, false
	}
	p.Guest = netip.AddrPortFrom(netip.Addr{}, port)
	if port, isPort := parsePort(s[:i]); isPort {
		p.Host = netip.AddrPortFrom(netip.Addr{}, port)
		return p, true
	}
	var err error
	p.Host, err = netip.ParseAddrPort(s[:i])
	return p, err == nil && p.Host.Port() != 0
}

// parsePort parses a port from 1 to 65535, without a sign.
func parsePort(s string) (uint16, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil && n != 0 && s[0] != '+'
}
