// Package guest defines the configuration that the loam command passes to a program that it starts: its links,
// as inherited descriptors, the settings of its network, and its files. It is encoded in one environment
// variable, which Loam removes before the program runs.
//
// The encoding is lines of words, "key=value". It needs few imports to decode: every package imported here
// is linked into every guest.
package guest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"loam/link"
	"loam/wire"
)

// Variable is the name of the environment variable.
const Variable = "LOAM_GUEST"

// Config is the network and the files of a guest. The zero value is a network with only a loopback
// interface, and a file tree with only the files that Loam creates.
type Config struct {
	Hostname string
	DNS      []netip.Addr
	Links    []Link
	Mounts   []Mount
	Shared   []Shared
	Folder   string // working folder at the start; empty: /
	User     string // user of a Linux program, USER[:GROUP]; empty: root
	Machine  bool   // the guest is a virtual machine

	Disks []Disk // disks in the order of their numbers

	// Streams are the modes (st_mode) of the standard streams that a virtual machine reaches through
	// package channel; 0 for a stream that is not open. If all are 0, the machine does not use package
	// channel. Ordered reports that standard output and standard error are the same file.
	Streams [3]uint32
	Ordered bool
	// Terminal says that a Linux program gets a terminal of its own, which is connected to standard input and output.
	Terminal bool

	// Handed is the descriptor of the socket through which a process receives connections to its published
	// ports (usernet/hand); 0: none.
	Handed int
	// HandedFrom6 is the apparent peer address of these connections if the program listens on IPv6 only.
	// Otherwise it is the link's Gateway.
	HandedFrom6 netip.Addr

	// These fields are for a process, which can open no file of the host. Program is the path of its
	// executable, and ProgramFD a descriptor of it. ClockSource is the host's clock source. HandedFirst is
	// the lowest descriptor number of a handed-over connection.
	Program     string
	ProgramFD   int
	ClockSource string
	HandedFirst int
	// Limited reports that the loam command has set GOMAXPROCS to the control group's limit, which the
	// runtime of a process cannot read.
	Limited bool

	// Results are the paths of files in the guest that the loam command receives as an archive (tar) when the program ends.
	// A process writes the archive to ResultsFD. ResultFolders are created before the program starts.
	Results, ResultFolders []string
	ResultsFD              int
}

// Mount is an archive (fs/tarfs) that is mounted in the guest's tree.
type Mount struct {
	Archive  int    // descriptor of the archive in a process, number of the archive in a machine
	Path     string // mount point; "/": its files are added to the root file system
	File     bool   // the archive contains one file, which is mounted instead of a folder
	Writable bool   // writes succeed and stay in memory; the root is always writable
	Deferred bool   // a folder that is loaded on first access
}

// Shared is a folder of the host that the program can change (fs/ninep).
type Shared struct {
	Server  int    // descriptor of a socket to the server in a process; number of a console, from 0, in a machine
	Memory  int    // descriptor of the memory that a process shares with the server (fs/ninep/ring); 0: none
	Path    string // mount point
	NoCache bool   // caching is off: mode None of fs/ninep
}

// SharesRoot reports whether a folder of the host is the root.
func (c Config) SharesRoot() bool {
	for _, s := range c.Shared {
		if s.Path == "/" {
			return true
		}
	}
	return false
}

// Kind is the kind of a link, which determines the meaning of its descriptors.
type Kind string

// Values of Kind: what a network link of the guest leads to.
const (
	Socket Kind = "socket" // a socket to the loam command (loam/link/unixsock)
	Tap    Kind = "tap"    // queues of a TAP device of the host (loam/link/tap)
	Card   Kind = "card"   // a virtual machine's network card, without descriptors (loam/link/virtionet, loam/link/e1000e)
)

// Link is one network link of a guest.
type Link struct {
	Kind Kind
	Name string // name of the interface, such as "eth0"
	FDs  []int  // descriptors, one per queue
	MTU  int
	MAC  wire.MAC // MAC address of the guest's end; zero: any
	// Offloads are, for a Tap, the offloads that the host's side has enabled; for a Card, offloads that the driver may use
	// although it cannot learn whether the monitor implements them (e1000e.Config.Segment).
	Offloads link.Offloads
	Address  netip.Prefix // IPv4 address; not valid: none
	Gateway  netip.Addr   // default gateway for IPv4; not valid: none
	Address6 netip.Prefix // IPv6 address; if neither address is valid, the guest uses DHCP and IPv6 autoconfiguration
	Gateway6 netip.Addr   // default gateway for IPv6; not valid: none
	Alone    bool         // no other host on the link can have the addresses: no conflict detection
	Trace    int          // descriptor for a pcapng trace; 0: none
}

// Encode returns the value of Variable.
func (c Config) Encode() string {
	var b strings.Builder
	if c.Hostname != "" {
		fmt.Fprintf(&b, "host name=%s\n", c.Hostname)
	}
	if c.Machine {
		b.WriteString("host machine=yes\n")
	}
	for _, d := range c.Disks {
		d.encode(&b)
	}
	if c.Streams != [3]uint32{} {
		fmt.Fprintf(&b, "streams input=%d output=%d errors=%d\n", c.Streams[0], c.Streams[1], c.Streams[2])
	}
	if c.Ordered {
		b.WriteString("streams ordered=yes\n")
	}
	if c.Terminal {
		b.WriteString("streams terminal=yes\n")
	}
	if c.Handed != 0 {
		fmt.Fprintf(&b, "host handed=%d\n", c.Handed)
	}
	if c.HandedFrom6.IsValid() {
		fmt.Fprintf(&b, "host handedfrom6=%s\n", c.HandedFrom6)
	}
	if c.Program != "" {
		fmt.Fprintf(&b, "process program=%s fd=%d first=%d", escape(c.Program), c.ProgramFD, c.HandedFirst)
		if c.ClockSource != "" {
			fmt.Fprintf(&b, " clock=%s", escape(c.ClockSource))
		}
		if c.Limited {
			b.WriteString(" limited=yes")
		}
		b.WriteString("\n")
	}
	for _, name := range c.Results {
		fmt.Fprintf(&b, "results file=%s\n", escape(name))
	}
	for _, name := range c.ResultFolders {
		fmt.Fprintf(&b, "results folder=%s\n", escape(name))
	}
	if c.ResultsFD != 0 {
		fmt.Fprintf(&b, "results fd=%d\n", c.ResultsFD)
	}
	if c.Folder != "" {
		fmt.Fprintf(&b, "host folder=%s\n", escape(c.Folder))
	}
	if c.User != "" {
		fmt.Fprintf(&b, "host user=%s\n", escape(c.User))
	}
	for _, m := range c.Mounts {
		b.WriteString(m.line())
	}
	for _, s := range c.Shared {
		b.WriteString(s.line())
	}
	for _, a := range c.DNS {
		fmt.Fprintf(&b, "dns address=%s\n", a)
	}
	for _, l := range c.Links {
		fmt.Fprintf(&b, "link kind=%s name=%s mtu=%d", l.Kind, l.Name, l.MTU)
		for _, fd := range l.FDs {
			fmt.Fprintf(&b, " fd=%d", fd)
		}
		if !l.MAC.IsZero() {
			fmt.Fprintf(&b, " mac=%s", l.MAC)
		}
		if l.Offloads != 0 {
			fmt.Fprintf(&b, " offloads=%d", l.Offloads)
		}
		if l.Address.IsValid() {
			fmt.Fprintf(&b, " address=%s", l.Address)
		}
		if l.Gateway.IsValid() {
			fmt.Fprintf(&b, " gateway=%s", l.Gateway)
		}
		if l.Address6.IsValid() {
			fmt.Fprintf(&b, " address6=%s", l.Address6)
		}
		if l.Gateway6.IsValid() {
			fmt.Fprintf(&b, " gateway6=%s", l.Gateway6)
		}
		if l.Alone {
			b.WriteString(" alone=yes")
		}
		if l.Trace != 0 {
			fmt.Fprintf(&b, " trace=%d", l.Trace)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// line returns the line of a mount in the encoding.
func (m Mount) line() string {
	text := fmt.Sprintf("mount archive=%d path=%s", m.Archive, escape(m.Path))
	if m.File {
		text += " file=yes"
	}
	if m.Writable {
		text += " writable=yes"
	}
	if m.Deferred {
		text += " deferred=yes"
	}
	return text + "\n"
}

// line returns the line of a shared folder in the encoding.
func (s Shared) line() string {
	text := fmt.Sprintf("shared server=%d path=%s", s.Server, escape(s.Path))
	if s.Memory != 0 {
		text += fmt.Sprintf(" memory=%d", s.Memory)
	}
	if s.NoCache {
		text += " cache=none"
	}
	return text + "\n"
}

// set stores one word of a shared folder's line, key=value.
func (s *Shared) set(key, value string) (err error) {
	switch {
	case key == "server":
		s.Server, err = strconv.Atoi(value)
	case key == "memory":
		s.Memory, err = strconv.Atoi(value)
	case key == "path":
		s.Path, err = unescape(value)
	case key == "cache" && value == "none":
		s.NoCache = true
	default:
		err = errMalformed
	}
	return err
}

// errMalformed is returned by Decode for a value that Encode does not produce.
var errMalformed = errors.New("guest: " + Variable + " is not what the loam command writes")

// Decode parses the value of Variable. The empty string is the zero Config.
func Decode(s string) (Config, error) {
	var c Config
	for line := range strings.Lines(s) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var l Link
		var m Mount
		var d Disk
		var shared Shared
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			if err := c.set(&l, &m, &d, &shared, words[0], key, value); err != nil {
				return Config{}, fmt.Errorf("%w: %s", errMalformed, word)
			}
		}
		switch {
		case words[0] == "link" && (len(l.FDs) > 0 || l.Kind == Card):
			c.Links = append(c.Links, l)
		case words[0] == "mount" && m.Path != "":
			c.Mounts = append(c.Mounts, m)
		case words[0] == "shared" && shared.Path != "":
			c.Shared = append(c.Shared, shared)
		case words[0] == "disk" && d.Kind != "":
			c.Disks = append(c.Disks, d)
		case words[0] == "link" || words[0] == "mount" || words[0] == "disk" || words[0] == "shared" || len(words) == 1:
			return Config{}, fmt.Errorf("%w: %s", errMalformed, strings.TrimSpace(line))
		}
	}
	return c, nil
}

// set stores one word of a line in c, or in the link, mount, disk or folder that the line describes.
//
// long: one case for each word
func (c *Config) set(l *Link, m *Mount, d *Disk, shared *Shared, line, key, value string) (err error) {
	switch line {
	case "disk":
		return d.set(key, value)
	case "shared":
		return shared.set(key, value)
	}
	switch line + " " + key {
	case "host name":
		c.Hostname = value
	case "host machine":
		c.Machine = true
	case "streams input":
		c.Streams[0], err = parseMode(value)
	case "streams output":
		c.Streams[1], err = parseMode(value)
	case "streams errors":
		c.Streams[2], err = parseMode(value)
	case "streams ordered":
		c.Ordered = true
	case "streams terminal":
		c.Terminal = true
	case "results file":
		var name string
		name, err = unescape(value)
		c.Results = append(c.Results, name)
	case "results folder":
		var name string
		name, err = unescape(value)
		c.ResultFolders = append(c.ResultFolders, name)
	case "results fd":
		c.ResultsFD, err = strconv.Atoi(value)
	case "process program":
		c.Program, err = unescape(value)
	case "process fd":
		c.ProgramFD, err = strconv.Atoi(value)
	case "process first":
		c.HandedFirst, err = strconv.Atoi(value)
	case "process clock":
		c.ClockSource, err = unescape(value)
	case "process limited":
		c.Limited = true
	case "host handed":
		c.Handed, err = strconv.Atoi(value)
	case "host handedfrom6":
		c.HandedFrom6, err = netip.ParseAddr(value)
	case "host folder":
		c.Folder, err = unescape(value)
	case "host user":
		c.User, err = unescape(value)
	case "mount archive":
		m.Archive, err = strconv.Atoi(value)
	case "mount path":
		m.Path, err = unescape(value)
	case "mount file":
		m.File = true
	case "mount writable":
		m.Writable = true
	case "mount deferred":
		m.Deferred = true
	case "dns address":
		var a netip.Addr
		a, err = netip.ParseAddr(value)
		c.DNS = append(c.DNS, a)
	case "link kind":
		l.Kind = Kind(value)
	case "link name":
		l.Name = value
	case "link fd":
		var fd int
		fd, err = strconv.Atoi(value)
		l.FDs = append(l.FDs, fd)
	case "link mtu":
		l.MTU, err = strconv.Atoi(value)
	case "link mac":
		var mac net.HardwareAddr
		if mac, err = net.ParseMAC(value); err == nil && len(mac) != len(l.MAC) {
			err = errMalformed
		}
		copy(l.MAC[:], mac)
	case "link offloads":
		var n uint64
		n, err = strconv.ParseUint(value, 10, 8)
		l.Offloads = link.Offloads(n)
	case "link address":
		l.Address, err = netip.ParsePrefix(value)
	case "link gateway":
		l.Gateway, err = netip.ParseAddr(value)
	case "link address6":
		l.Address6, err = netip.ParsePrefix(value)
	case "link gateway6":
		l.Gateway6, err = netip.ParseAddr(value)
	case "link alone":
		l.Alone = true
	case "link trace":
		l.Trace, err = strconv.Atoi(value)
	default:
		err = errMalformed
	}
	return err
}

// parseMode parses the mode of a standard stream.
func parseMode(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err
}
