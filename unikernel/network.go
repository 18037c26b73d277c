package unikernel

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"loam/boot"
	"loam/link"
	"loam/link/trace"
	"loam/link/unixsock"
	"loam/unikernel/complaint"
	"loam/unikernel/guest"
	"loam/usernet"
	"loam/wire"
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
	Kind     NetworkKind
	Forwards []usernet.Forward // UserNetwork: ports of the host that lead to the guest
	Relay    bool              // UserNetwork: no connection is handed to the program (hand.go)
	// HostLoopback is that of usernet.Config, for UserNetwork.
	HostLoopback bool
	Tap          string            // TapNetwork: the name of the device, which is made if it is not there
	Address      netip.Prefix      // TapNetwork: of the guest, of IPv4
	Gateway      netip.Addr        // TapNetwork: of the guest; not valid: none
	Address6     netip.Prefix      // TapNetwork: likewise of IPv6; if neither is valid: by DHCP, and by what routers say
	Gateway6     netip.Addr        // TapNetwork: likewise; may be link-local
	Refused      func(port uint16) // UserNetwork: as in usernet.Config; nil: nobody is told
	Trace        string            // a file for what passes, in pcapng; empty: none
}

// network is the outside of a guest's network: what the loam command holds.
type network struct {
	config guest.Config
	files  []*os.File // for the guest, descriptors firstGuestFD and up
	end    func()     // takes down what is left

	// Of a virtual machine: what files are, and the archives that it is loaded with.
	cable    cable
	archives []*os.File
	results  *os.File // where the archive of results goes
}

// cable is what connects the card of a virtual machine.
type cable struct {
	tap    bool // files are queues of a TAP device; else a socket that frames pass as a stream
	queues int
	mtu    int
	mac    wire.MAC // of the card; zero: QEMU's
}

const (
	firstGuestFD = 3
	firstArchive = boot.ConfigArchive + 1
	guestLink    = "eth0"
)

// Of the network that the gateway makes (usernet.Config). A frame carries as much
// as IPv4 allows: between two processes nothing is gained by less.
const userMTU = 65535

// cardMTU is that of a virtual machine's network card.
const cardMTU = 1500

var (
	userAddress = netip.MustParsePrefix("10.0.2.15/24")
	userGateway = netip.MustParseAddr("10.0.2.2")
	userDNS     = netip.MustParseAddr("10.0.2.3")

	userAddress6 = netip.MustParsePrefix("fd6c:6f61:6d00::15/64")
	userGateway6 = netip.MustParseAddr("fd6c:6f61:6d00::2")
)

// openNetwork makes the network's outside, for a guest that can use so many queues.
func openNetwork(o *Network, hostname string, platform Platform, queues int) (*network, error) {
	n := &network{config: guest.Config{Hostname: hostname, Machine: platform == Machine}, end: func() {}}
	var err error
	switch o.Kind {
	case UserNetwork:
		err = n.openUser(o, hostname, platform)
	case TapNetwork:
		if err = n.openTap(o, queues); err == nil && platform == Machine {
			err = n.giveTap(o)
		}
	case NoNetwork:
		if o.Trace != "" {
			err = errorf("leave the trace out, or use another network", "nothing passes a network that is not there")
		}
	}
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// give has the guest inherit a file and returns its descriptor there.
func (n *network) give(f *os.File) int {
	n.files = append(n.files, f)
	return firstGuestFD + len(n.files) - 1
}

// addFiles gives the guest its files, and has it begin in our folder.
func (n *network) addFiles(o *Options) (err error) {
	if n.config.Folder, err = os.Getwd(); err != nil {
		return err
	}
	give := n.give
	if o.Target.Platform == Machine {
		give = n.load
	}
	n.config.Mounts, err = openVolumes(o.Volumes, give)
	return err
}

// load has a virtual machine be loaded with an archive and returns its number there.
func (n *network) load(f *os.File) int {
	n.archives = append(n.archives, f)
	return firstArchive + len(n.archives) - 1
}

// readArchives reads the archives that a virtual machine is loaded with, as
// boot.Archive numbers them.
func (n *network) readArchives() ([]byte, error) {
	all := make([][]byte, firstArchive)
	for _, f := range n.archives {
		st, err := f.Stat()
		if err != nil {
			return nil, err
		}
		b := make([]byte, st.Size())
		if _, err := f.ReadAt(b, 0); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return boot.EncodeArchives(all), nil
}

// handedOver closes the command's copies of what the guest has inherited.
func (n *network) handedOver() {
	for _, f := range append(n.files, n.archives...) {
		f.Close()
	}
	n.files, n.archives = nil, nil
}

// close takes the network down.
func (n *network) close() {
	n.handedOver()
	n.end()
}

// finishTime is how long the gateway may take to hand over what a program that
// has ended had sent.
const finishTime = 5 * time.Second

// openUser starts a gateway and connects the guest to it.
func (n *network) openUser(o *Network, hostname string, platform Platform) error {
	ours, theirs, err := unixsock.SocketPair(unixsock.Stream)
	if err != nil {
		return errorf("close some files or raise the limit (ulimit -n)", "%v", err)
	}
	n.config.DNS = []netip.Addr{userDNS}
	mtu := userMTU
	n.config.Links = []guest.Link{{
		Kind: guest.Socket, Name: guestLink, FDs: []int{n.give(theirs)}, MTU: mtu,
		Address: userAddress, Gateway: userGateway, Address6: userAddress6, Alone: true,
	}}
	if usernet.HostHasIPv6() { // else it leads nowhere, which the program is told at once
		n.config.Links[0].Gateway6 = userGateway6
	}
	if platform == Machine { // the other end is QEMU, and its other end a card
		mtu = cardMTU
		n.config.Links[0].Kind, n.config.Links[0].FDs, n.config.Links[0].MTU = guest.Card, nil, mtu
	}
	var dev link.Device
	dev, err = unixsock.FromFiles(unixsock.Config{Name: "guest", MTU: mtu, Header: platform == Process}, ours)
	if err != nil {
		return err
	}
	if o.Trace != "" {
		traced, err := trace.Create(dev, o.Trace, nil)
		if err != nil {
			dev.Close()
			return errorf("name a file that can be written", "%v", err)
		}
		dev = traced
	}
	program, err := n.openHanding(o, platform)
	if err != nil {
		dev.Close()
		return err
	}
	gateway, err := usernet.New(usernet.Config{
		Device: dev, Prefix: userAddress, Gateway: userGateway, DNS: userDNS, Guest: userAddress.Addr(),
		Prefix6: userAddress6, Gateway6: userGateway6, Guest6: userAddress6.Addr(),
		Hostname: hostname, Forwards: o.Forwards, Program: program, Refused: o.Refused,
		HostLoopback: o.HostLoopback, Log: slog.New(complaint.Handler{To: os.Stderr}),
	})
	var port *usernet.ForwardError
	if errors.As(err, &port) {
		return publishError(port)
	}
	if err != nil {
		return fmt.Errorf("the gateway does not start: %w", err)
	}
	n.end = func() {
		gateway.Finish(finishTime)
		gateway.Close()
	}
	return nil
}
