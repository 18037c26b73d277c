//go:build linux

package interop

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/stack"
)

// Source filters. Loam at one end of a tap and the kernel at the other are given the same filters, and
// must report the same to the link.

// Options of RFC 3678 (linux/in.h), and the mode MCAST_INCLUDE.
const (
	mcastJoinGroup       = 42
	mcastJoinSourceGroup = 46
	mcastFilter          = 48
	mcastInclude         = 1
)

// storedAddress returns a struct sockaddr_storage.
func storedAddress(a netip.Addr) []byte {
	b := make([]byte, 128)
	if a.Is4() {
		binary.NativeEndian.PutUint16(b, syscall.AF_INET)
		copy(b[4:], a.AsSlice())
	} else {
		binary.NativeEndian.PutUint16(b, syscall.AF_INET6)
		copy(b[8:], a.AsSlice())
	}
	return b
}

// listener is a socket that receives one group on the tap.
type listener interface {
	listen(stack.SourceFilter) error
}

// linuxListener is a socket of the kernel that receives a group on an interface.
type linuxListener struct {
	fd, level, index int
	group            netip.Addr
	member           bool
}

func (l *lab) listenLinux(group netip.Addr, index int) *linuxListener {
	l.Helper()
	c := &linuxListener{level: syscall.IPPROTO_IP, index: index, group: group}
	domain := syscall.AF_INET
	if group.Is6() {
		domain, c.level = syscall.AF_INET6, syscall.IPPROTO_IPV6
	}
	fd, err := syscall.Socket(domain, syscall.SOCK_DGRAM, 0)
	l.must(err)
	l.Cleanup(func() { syscall.Close(fd) })
	c.fd = fd
	return c
}

// listen sets the source filter of the group.
func (c *linuxListener) listen(f stack.SourceFilter) error {
	b := append(binary.NativeEndian.AppendUint64(nil, uint64(c.index)), storedAddress(c.group)...)
	name := mcastFilter
	switch {
	case c.member:
		mode := mcastInclude
		if f.Exclude {
			mode = 0
		}
		b = binary.NativeEndian.AppendUint32(b, uint32(mode))
		b = binary.NativeEndian.AppendUint32(b, uint32(len(f.Sources)))
		for _, source := range f.Sources {
			b = append(b, storedAddress(source)...)
		}
	case f.Exclude:
		name = mcastJoinGroup
	default:
		name = mcastJoinSourceGroup
		b = append(b, storedAddress(f.Sources[0])...)
	}
	c.member = !f.None()
	return syscall.SetsockoptString(c.fd, c.level, name, string(b))
}

// loamListener is a socket of Loam.
type loamListener struct {
	*stack.UDPConn
	on     *stack.Interface
	group  netip.Addr
	member bool
}

func (c *loamListener) listen(f stack.SourceFilter) error {
	was := c.member
	c.member = !f.None()
	switch {
	case was:
		return c.SetSourceFilter(c.group, c.on, f)
	case f.Exclude:
		return c.JoinGroup(c.group, c.on)
	}
	return c.JoinSourceSpecificGroup(c.group, f.Sources[0], c.on)
}

// reported returns what a station has reported about a group, without repetitions, according to a file
// written by tcpdump: records as types and sources, ordered by type.
func (l *lab) reported(file, mac string, group netip.Addr) (said []string) {
	l.Helper()
	fields := "igmp.record_type igmp.num_src igmp.maddr igmp.saddr"
	if group.Is6() {
		fields = "icmpv6.mldr.mar.record_type icmpv6.mldr.mar.nb_sources icmpv6.mldr.mar.multicast_address icmpv6.mldr.mar.source_address"
	}
	args := []string{"-n", "-r", file, "-Y", "eth.src==" + mac + " && " + strings.Fields(fields)[0], "-T", "fields"}
	for _, f := range strings.Fields(fields) {
		args = append(args, "-e", f)
	}
	out, _ := l.try("tshark", args...) // the only expected error is an incomplete packet at the end of the file
	for line := range strings.Lines(out) {
		text := recordsOf(strings.TrimSuffix(line, "\n"), group)
		if text != "" && (len(said) == 0 || said[len(said)-1] != text) {
			said = append(said, text)
		}
	}
	return said
}

// recordsOf extracts the records of a group from a report. The fields are lists: types, numbers of
// sources, groups, and the sources of all records.
func recordsOf(line string, group netip.Addr) string {
	fields := strings.Split(line, "\t")
	if len(fields) != 4 { // a message of tshark itself
		return ""
	}
	var lists [4][]string
	for i, f := range fields {
		lists[i] = strings.Split(f, ",")
	}
	var records []string
	sources := lists[3]
	for i, kind := range lists[0] {
		n, _ := strconv.Atoi(lists[1][i])
		if lists[2][i] == group.String() {
			records = append(records, fmt.Sprint(kind, sources[:n]))
		}
		sources = sources[n:]
	}
	slices.Sort(records)
	return strings.Join(records, " ")
}

// TestSourcesAsLinux checks that Loam reports each change as the kernel does.
func TestSourcesAsLinux(t *testing.T) {
	l := newLab(t, setup{})
	l.need("tshark")
	l.openIPv6(l.tap)
	l.awaitLinkLocal()
	time.Sleep(3 * time.Second) // after that time the kernel repeats all reports, and once more a second later
	kernel, err := net.InterfaceByName(l.tap)
	l.must(err)
	file := filepath.Join(t.TempDir(), "sources.pcap")
	l.capture(file)
	ends := []struct{ local, group, source string }{
		{"0.0.0.0:5000", "232.1.2.3", "192.0.2.1"},
		{"[::]:5001", "ff35::4000:5", "2001:db8::1"},
	}
	var listeners []listener
	var firsts []netip.Addr
	for _, c := range ends {
		u, err := l.stack.ListenUDP(netip.MustParseAddrPort(c.local), stack.UDPOptions{})
		l.must(err)
		defer u.Close()
		group, first := netip.MustParseAddr(c.group), netip.MustParseAddr(c.source)
		listeners = append(listeners, &loamListener{UDPConn: u, on: l.ifc, group: group}, l.listenLinux(group, kernel.Index))
		firsts = append(firsts, first, first)
	}
	for _, f := range []struct {
		exclude bool
		sources []int
	}{
		{false, []int{0}}, {false, []int{0, 1}}, {false, []int{1, 2}}, // records that each filter causes: ALLOW; ALLOW; ALLOW and BLOCK
		{true, []int{0}}, {true, []int{1}}, {true, nil}, // TO_EX; ALLOW and BLOCK; ALLOW
		{false, []int{2}}, {false, nil}, {true, nil}, {false, nil}, // TO_IN; BLOCK; TO_EX; TO_IN
	} {
		for i, c := range listeners {
			filter := stack.SourceFilter{Exclude: f.exclude}
			for _, n := range f.sources {
				filter.Sources = append(filter.Sources, after(firsts[i], n))
			}
			l.must(c.listen(filter))
		}
		time.Sleep(2 * time.Second) // waits until both hosts have repeated their reports as often as they do
	}
	for _, c := range ends {
		group := netip.MustParseAddr(c.group)
		got, want := l.reported(file, l.ifc.MAC().String(), group), l.reported(file, kernel.HardwareAddr.String(), group)
		if len(want) != 10 || !slices.Equal(got, want) {
			t.Errorf("of %v Loam says\n%s\nand Linux\n%s", group, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// after returns the address that is n places after the address a.
func after(a netip.Addr, n int) netip.Addr {
	for range n {
		a = a.Next()
	}
	return a
}
