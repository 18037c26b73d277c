package unikernel

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
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

// NetworkKind is the kind of network that a guest is connected to.
type NetworkKind int

// Values of NetworkKind: what the program's network card leads to.
const (
	UserNetwork NetworkKind = iota // a gateway in the loam command, which needs no privilege
	TapNetwork                     // a TAP device of the host
	NoNetwork                      // only the guest's own loopback interface
)

// Network describes the network that a guest is connected to.
type Network struct {
	Kind     NetworkKind
	Forwards []usernet.Forward // for UserNetwork: ports of the host that are forwarded to the guest
	Relay    bool              // for UserNetwork: connections are relayed and not handed over to the program (hand.go)
	// HostLoopback is for UserNetwork: the guest can reach services on the host's loopback addresses, through the gateway's
	// addresses (see usernet.Config).
	HostLoopback bool
	Tap          string       // for TapNetwork: name of the device, which is created if it does not exist
	Address      netip.Prefix // for TapNetwork: the guest's IPv4 address
	Gateway      netip.Addr   // for TapNetwork: the guest's IPv4 gateway; not valid: none
	// for TapNetwork: the guest's IPv6 address; if neither address is valid, the guest uses DHCP and IPv6 autoconfiguration
	Address6 netip.Prefix
	Gateway6 netip.Addr        // for TapNetwork: the guest's IPv6 gateway, which may be link-local
	Refused  func(port uint16) // for UserNetwork: see usernet.Config; may be nil
	Trace    string            // pcapng file for all packets; empty: none
}

// network is the loam command's side of a guest's network.
type network struct {
	config guest.Config
	files  []*os.File // files that the guest inherits, numbered from firstGuestFD
	end    func()     // releases the resources of the network

	// The fields below are for a virtual machine: cable describes the files that QEMU connects to its network card.
	cable    cable
	archives []*os.File
	results  *os.File   // write end of the pipe for the archive of results
	shared   []*os.File // sockets to the servers of shared folders, for consoles of the machine
	disks    []*drive   // disks whose files have not been passed to the guest yet
}

// cable describes what a virtual machine's network card is connected to.
type cable struct {
	tap    bool // the files are queues of a TAP device; otherwise there is one stream socket that carries frames
	queues int
	mtu    int
	mac    wire.MAC // MAC address of the card; zero: QEMU chooses one
}

// firstGuestFD is the number of the first inherited descriptor in the guest. firstArchive is the number of
// the first archive in a virtual machine. guestLink is the name of the guest's network interface.
const (
	firstGuestFD = 3
	firstArchive = boot.ConfigArchive + 1
	guestLink    = "eth0"
)

// userMTU is the MTU of the gateway's network (usernet.Config). It is the largest IPv4 packet: between two
// processes a smaller one has no advantage.
const userMTU = 65535

// cardMTU is the MTU of a virtual machine's network card.
const cardMTU = 1500

// Addresses of the network whose gateway is in the loam command.
var (
	userAddress = netip.MustParsePrefix("10.0.2.15/24")
	userGateway = netip.MustParseAddr("10.0.2.2")
	userDNS     = netip.MustParseAddr("10.0.2.3")

	userAddress6 = netip.MustParsePrefix("fd6c:6f61:6d00::15/64")
	userGateway6 = netip.MustParseAddr("fd6c:6f61:6d00::2")
)

// openNetwork opens the command's side of a network, for a guest that can use up to queues device queues.
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

// give adds f to the files that the guest inherits, and returns its descriptor number in the guest.
func (n *network) give(f *os.File) int {
	n.files = append(n.files, f)
	return firstGuestFD + len(n.files) - 1
}

// addFiles gives the guest its volumes, and sets the guest's working folder.
func (n *network) addFiles(o *Options) (err error) {
	n.config.User = o.User
	switch {
	case o.Folder != "":
		n.config.Folder = o.Folder
	case o.Root != "":
		n.config.Folder = "/"
	default:
		if n.config.Folder, err = os.Getwd(); err != nil {
			return err
		}
	}
	if err := n.share(o.Shared, o.Target.Platform); err != nil {
		return err
	}
	give := n.giver(o.Target.Platform)
	volumes := o.Volumes
	if o.Target.Platform == Machine {
		volumes = withLibraries(volumes)
	}
	if o.Root == "" {
		n.config.Mounts, err = openVolumes(volumes, give)
		return err
	}
	if o.root != nil {
		n.config.Mounts = []guest.Mount{{Archive: give(o.root), Path: "/"}}
		o.root = nil
	}
	more, err := packVolumes(volumes, give)
	n.config.Mounts = append(n.config.Mounts, more...)
	return err
}

// giver returns the function that passes an archive to the guest.
func (n *network) giver(platform Platform) func(*os.File) int {
	if platform == Machine {
		return n.load
	}
	return n.give
}

// addVolumes gives the guest further volumes.
func (n *network) addVolumes(volumes []Volume, platform Platform) error {
	more, err := packVolumes(volumes, n.giver(platform))
	n.config.Mounts = append(n.config.Mounts, more...)
	return err
}

// load adds f to the archives that are loaded into a virtual machine, and returns its number.
func (n *network) load(f *os.File) int {
	n.archives = append(n.archives, f)
	return firstArchive + len(n.archives) - 1
}

// readArchives returns the encoded archives for a virtual machine, numbered as boot.Archive expects.
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

// handedOver closes the command's copies of the files that the guest has inherited.
func (n *network) handedOver() {
	for _, f := range slices.Concat(n.files, n.archives, n.shared) {
		f.Close()
	}
	n.files, n.archives, n.shared = nil, nil, nil
	closeImages(n.disks)
	n.disks = nil
}

// close releases the network.
func (n *network) close() {
	n.handedOver()
	n.end()
}

// finishTime is how long the gateway may continue to deliver data that the program sent before it ended.
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
	if usernet.HostHasIPv6() { // without a route on the host, the gateway rejects IPv6 connections at once
		n.config.Links[0].Gateway6 = userGateway6
	}
	if platform == Machine { // QEMU has the other end, and connects it to a network card
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
