// Package guest is what the loam command tells a program that it starts: the
// links that the program gets, as descriptors that it inherits, and how its
// network is configured. It travels in one variable of the environment, which
// is gone when the program looks.
//
// The form is lines of words, "key=value", so that little is needed to read it:
// everything that is imported here is linked into every guest.
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

// Variable is the variable of the environment.
const Variable = "LOAM_GUEST"

// Config is the network and the files of a guest. The zero value is a network with
// nothing but a loopback, and a tree with nothing but what Loam makes itself.
type Config struct {
	Hostname string
	DNS      []netip.Addr
	Links    []Link
	Mounts   []Mount
	Folder   string // where the program begins; empty: the root
	Machine  bool   // the guest is a virtual machine

	Disks int // that a virtual machine has

	// Streams are the modes (st_mode) of the standard streams that a virtual machine
	// reaches by package channel; 0 if it does not. Ordered says that standard output
	// and standard error are the same file.
	Streams [3]uint32
	Ordered bool

	// Handed is the descriptor of a socket by which connections of published ports are
	// handed to a process (usernet/hand); 0: there is none.
	Handed int
	// HandedFrom6 is whom these seem to come from where the program listens for IPv6 alone; else it
	// is the link's Gateway.
	HandedFrom6 netip.Addr

	// Results are files of the guest that the loam command gets when the program ends,
	// as an archive (tar). ResultsFD is where a process writes it to.
	// ResultFolders are there when it begins.
	Results, ResultFolders []string
	ResultsFD              int
}

// Mount is an archive (fs/tarfs) in the guest's tree.
type Mount struct {
	Archive  int    // its number: a descriptor, or what a machine takes for one
	Path     string // where it is mounted; "/": its files are put into the root
	File     bool   // the archive has one file, and that is what is mounted
	Writable bool   // what is written stays in memory; the root is always so
	Deferred bool   // it is a folder, and is loaded when somebody first looks at it
}

// Kind is what the descriptors of a link are.
type Kind string

// Kinds of links.
const (
	Socket Kind = "socket" // loam/link/unixsock: the other end is the loam command
	Tap    Kind = "tap"    // loam/link/tap: queues of a device of the host
	Card   Kind = "card"   // loam/link/virtionet: of a machine; it has no descriptors
)

// Link is one link of a guest.
type Link struct {
	Kind     Kind
	Name     string // of the interface: "eth0"
	FDs      []int  // one for each queue
	MTU      int
	MAC      wire.MAC      // of this end; zero: any
	Offloads link.Offloads // of a Tap: what its other end was told
	Address  netip.Prefix  // of IPv4
	Gateway  netip.Addr    // default route; not valid: none
	Address6 netip.Prefix  // of IPv6; if neither is valid: ask DHCP, and listen to routers
	Gateway6 netip.Addr    // likewise
	Alone    bool          // nobody else on the link can have the addresses
	Trace    int           // a descriptor to write what passes to, in pcapng; 0: none
}

// Encode is the value of Variable.
func (c Config) Encode() string {
	var b strings.Builder
	if c.Hostname != "" {
		fmt.Fprintf(&b, "host name=%s\n", c.Hostname)
	}
	if c.Machine {
		b.WriteString("host machine=yes\n")
	}
	if c.Disks > 0 {
		fmt.Fprintf(&b, "host disks=%d\n", c.Disks)
	}
	if c.Streams != [3]uint32{} {
		fmt.Fprintf(&b, "streams input=%d output=%d errors=%d\n", c.Streams[0], c.Streams[1], c.Streams[2])
	}
	if c.Ordered {
		b.WriteString("streams ordered=yes\n")
	}
	if c.Handed != 0 {
		fmt.Fprintf(&b, "host handed=%d\n", c.Handed)
	}
	if c.HandedFrom6.IsValid() {
		fmt.Fprintf(&b, "host handedfrom6=%s\n", c.HandedFrom6)
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
	for _, m := range c.Mounts {
		fmt.Fprintf(&b, "mount archive=%d path=%s", m.Archive, escape(m.Path))
		if m.File {
			b.WriteString(" file=yes")
		}
		if m.Writable {
			b.WriteString(" writable=yes")
		}
		if m.Deferred {
			b.WriteString(" deferred=yes")
		}
		b.WriteString("\n")
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

// errMalformed is what Decode returns for anything that Encode does not write.
var errMalformed = errors.New("guest: " + Variable + " is not what the loam command writes")

// Decode reads the value of Variable; the empty string is the zero Config.
func Decode(s string) (Config, error) {
	var c Config
	for line := range strings.Lines(s) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var l Link
		var m Mount
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			if err := c.set(&l, &m, words[0], key, value); err != nil {
				return Config{}, fmt.Errorf("%w: %s", errMalformed, word)
			}
		}
		switch {
		case words[0] == "link" && (len(l.FDs) > 0 || l.Kind == Card):
			c.Links = append(c.Links, l)
		case words[0] == "mount" && m.Path != "":
			c.Mounts = append(c.Mounts, m)
		case words[0] == "link" || words[0] == "mount" || len(words) == 1:
			return Config{}, fmt.Errorf("%w: %s", errMalformed, strings.TrimSpace(line))
		}
	}
	return c, nil
}

// set takes one word of a line.
func (c *Config) set(l *Link, m *Mount, line, key, value string) (err error) {
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
	case "host handed":
		c.Handed, err = strconv.Atoi(value)
	case "host handedfrom6":
		c.HandedFrom6, err = netip.ParseAddr(value)
	case "host disks":
		c.Disks, err = strconv.Atoi(value)
	case "host folder":
		c.Folder, err = unescape(value)
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

func parseMode(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err
}
