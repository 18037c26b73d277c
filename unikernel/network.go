package unikernel

import (
	"net/netip"
	"os"

	"loam/unikernel/guest"
)

// NetworkKind is what a guest is connected to.
type NetworkKind int

// Kinds of networks.
const (
	UserNetwork NetworkKind = iota // a gateway in the loam command, which needs no privilege
	TapNetwork                     // a TAP device of the host
	NoNetwork                      // only the guest's own loopback
)

// Network says what a guest is connected to.
type Network struct {
	Kind    NetworkKind
	Tap     string       // the name of the device
	Address netip.Prefix // of the guest on it; not valid: by DHCP
	Gateway netip.Addr   // of the guest; not valid: none
	Trace   string       // a file for what passes, in pcapng; empty: none
}

// network is the outside of a guest's network: what the loam command holds.
type network struct {
	config guest.Config
	files  []*os.File // for the guest, descriptors 3 and up
	close  []func()
}

// firstGuestFD is the number in the guest of the first of network.files.
const firstGuestFD = 3

// closeFiles closes the command's copies of what the guest has inherited.
func (n *network) closeFiles() {
	for _, f := range n.files {
		f.Close()
	}
	n.files = nil
}

// end takes the network down.
func (n *network) end() {
	n.closeFiles()
	for _, f := range n.close {
		f()
	}
}
