package cell

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"loam/test/bench/subject"
)

// linkName is the device at the kernel's end of the link. nearName is the near end of a veth.
const (
	linkName = "bench0"
	nearName = "bench1"
)

// queueLen is the number of frames that a device queues for its reader. It is more than the largest
// burst of pings.
const queueLen = 4096

// loopbackUp sets the loopback of the current namespace up, with the MTU of the other links, and allows
// nearly all ports as local ports.
func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	if err := netlink.LinkSetMTU(lo, subject.MTU); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("10000 65535"), 0)
}

// tapUp configures the kernel's end of the tap that a subject created.
func tapUp() error {
	here, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer here.Close()
	return deviceUp(here, linkName, subject.First)
}

// veth connects this namespace to the namespace of process pid. If near is valid, the kernel gets that
// address at this end.
func veth(pid int, near netip.Prefix) error {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("namespace of the far process: %w", err)
	}
	defer ns.Close()
	pair := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: nearName},
		PeerName:      linkName,
		PeerNamespace: netlink.NsPid(pid),
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("veth: %w", err)
	}
	here, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer here.Close()
	there, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer there.Close()
	if err := deviceUp(here, nearName, near); err != nil {
		return err
	}
	return deviceUp(there, linkName, subject.First)
}

// carried waits until a device of this namespace has a carrier. Frames sent before that are lost, and a
// lost ARP request is repeated only after a second.
func carried(name string) error {
	const patience = 10 * time.Second
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		device, err := netlink.LinkByName(name)
		if err != nil || device.Attrs().OperState == netlink.OperUp {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s has no carrier", name)
		}
	}
}

// deviceUp assigns an address to a device, if it is valid, sets the length of its queue, and sets it
// up.
func deviceUp(h *netlink.Handle, name string, addr netip.Prefix) error {
	device, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if addr.IsValid() {
		parsed, err := netlink.ParseAddr(addr.String())
		if err != nil {
			return err
		}
		if err := h.AddrAdd(device, parsed); err != nil {
			return fmt.Errorf("%s: address %v: %w", name, addr, err)
		}
	}
	if err := h.LinkSetTxQLen(device, queueLen); err != nil {
		return fmt.Errorf("%s: queue length: %w", name, err)
	}
	if err := h.LinkSetUp(device); err != nil {
		return fmt.Errorf("%s: up: %w", name, err)
	}
	return nil
}
