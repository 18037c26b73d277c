package stack

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"loam/link"
	"loam/link/loop"
	"loam/stack/flood"
	"loam/stack/ip"
	"loam/stack/neigh"
	"loam/stack/shared"
	"loam/wire"
)

// Interface is a link attached to a stack.
//
// Its loop owns the state that exists once per link: the neighbour cache, the DHCP client, and the multicast group reports.
// Other goroutines send it requests and messages through channels. The loop publishes resolved neighbours in an immutable map.
type Interface struct {
	stack       *Stack
	name        string
	index       int
	device      link.Device
	thinning    *flood.Thinning // thinning of floods by the device; nil: the device cannot thin out floods; owned by loop
	listing     *flood.Listing  // connections whose segments the device still delivers while it drops stray segments (of no connection); nil: not supported by the device; owned by loop
	medium      link.Medium
	mac         wire.MAC
	mtu         int
	offloads    link.Offloads
	loopback    bool
	local       *loop.Device // the loopback device; nil: it is another device
	acceptAny   bool
	ipv6        bool
	noDetection bool
	groupless   bool // membership in multicast groups is not reported on this link

	receivers []*receiver
	ports     []*txPort

	neighbours  atomic.Pointer[map[netip.Addr]*neighbour] // addresses that are resolved; loop replaces the whole map
	arpIn       chan wire.ARP                             // ARP packets from receivers; never closed; if the channel is full, a packet is dropped and counted
	ndIn        chan neigh.Message                        // Neighbor Discovery messages from receivers; never closed; if full, a message is dropped and counted
	wanted      chan neighMessage                         // next hops to resolve or to confirm, from shards; never closed; if full, packets that wait are dropped
	leases      chan []byte                               // DHCP messages from receivers; never closed; if full, a message is dropped
	dhcp6In     chan []byte                               // DHCPv6 messages from receivers; never closed; if full, a message is dropped
	asking6     atomic.Bool                               // a DHCPv6 client is running
	leasing     atomic.Bool                               // a DHCP client is running
	routersIn   chan routerMessage                        // messages of routers, from receivers; never closed; if full, a message is dropped and counted
	groupsIn    chan wire.GroupMessage                    // IGMP and MLD messages from shards; never closed; if full, a message is dropped and counted
	redirectsIn chan redirectMessage                      // redirects from receivers and shards; never closed; if full, a redirect is dropped and counted
	routing     atomic.Int32                              // the interface's role in router discovery: routerless and the other constants

	receptions receptions // multicast groups that sockets and addresses need

	mu       sync.Mutex         // guards requests
	requests []func(*ifaceLoop) // run in order by loop
	wake     chan struct{}      // capacity 1: signalled when a request is added, never closed
	done     chan struct{}      // closed by close
	ended    chan struct{}      // closed by loop
}

// InterfaceConfig configures an attachment. The zero value attaches the device under its own name.
type InterfaceConfig struct {
	Name string   // name of the interface; empty: the device's name
	MAC  wire.MAC // zero: the device's, or a random locally administered address
	MTU  int      // largest packet in bytes; zero: the device's MTU, which is also the maximum
	// AcceptAny makes the interface accept packets to any destination address. Packets
	// that match no socket go to the stack's forwarder.
	AcceptAny bool
	// NoIPv6 disables IPv6 on the interface: it has no link-local address and drops IPv6 packets.
	NoIPv6 bool
	// NoDetection skips duplicate address detection (RFC 4862 section 5.4). IPv6
	// addresses are usable at once instead of after one second.
	NoDetection bool
}

// minMTU is the smallest MTU that Attach accepts, in bytes. RFC 791 requires hosts to
// forward 68 bytes, and RFC 1122 to reassemble 576. Smaller MTUs are of no practical use.
const minMTU = 576

// Attach attaches a device to the stack. The stack then owns the device and closes it when the interface is detached or the
// stack is closed. Errors: ErrExists if the name is in use, ErrInvalid if the MTU is below 576, ErrClosed.
func (s *Stack) Attach(dev link.Device, c InterfaceConfig) (*Interface, error) {
	info := dev.Info()
	if c.Name == "" {
		c.Name = info.Name
	}
	if c.MAC.IsZero() {
		c.MAC = info.MAC
	}
	if c.MAC.IsZero() {
		c.MAC = s.randomMAC()
	}
	if c.MTU == 0 || c.MTU > info.MTU {
		c.MTU = info.MTU
	}
	if c.MTU < minMTU {
		return nil, fmt.Errorf("attach %s: MTU %d is below %d: %w", c.Name, c.MTU, minMTU, ErrInvalid)
	}
	ifc, err := s.attach(dev, c, false)
	if err == nil {
		err = s.firstAddress6(ifc)
	}
	return ifc, err
}

// attach creates an interface with a complete configuration, publishes it and starts its goroutines.
func (s *Stack) attach(dev link.Device, c InterfaceConfig, loopback bool) (*Interface, error) {
	info := dev.Info()
	ifc := &Interface{
		stack: s, name: c.Name, device: dev, medium: info.Medium, mac: c.MAC, mtu: c.MTU,
		offloads: info.Offloads, loopback: loopback, acceptAny: c.AcceptAny,
		ipv6: !c.NoIPv6 && !s.config.NoIPv6 && c.MTU >= ip.MinPathMTU6, noDetection: c.NoDetection,
		groupless: info.Medium != link.Ethernet || loopback || c.AcceptAny,
		arpIn:     make(chan wire.ARP, 256),
		ndIn:      make(chan neigh.Message, 256),
		wanted:    make(chan neighMessage, 256),
		leases:    make(chan []byte, 8), dhcp6In: make(chan []byte, 8), routersIn: make(chan routerMessage, 32), groupsIn: make(chan wire.GroupMessage, 32),
		redirectsIn: make(chan redirectMessage, 32),
		wake:        make(chan struct{}, 1),
		done:        make(chan struct{}),
		ended:       make(chan struct{}),
	}
	if loopback {
		ifc.local = dev.(*loop.Device)
	}
	if info.Medium == link.Ethernet && !c.AcceptAny {
		if thinner, ok := dev.(link.Thinner); ok {
			used := func(port uint16) bool { return port == dhcpClientPort || s.ports.Used(wire.ProtoUDP, port) }
			ifc.thinning = flood.NewThinning(thinner, used, s.peers.List)
			ifc.listing = flood.NewListing(thinner)
		}
	}
	ifc.neighbours.Store(&map[netip.Addr]*neighbour{})
	for _, q := range dev.Queues() {
		ifc.receivers = append(ifc.receivers, newReceiver(ifc, q))
		ifc.ports = append(ifc.ports, &txPort{queue: q})
	}
	err := s.change(func(t *tables) error {
		if t.byName(c.Name) != nil {
			return fmt.Errorf("attach %s: interface %w", c.Name, ErrExists)
		}
		s.nextIndex++
		ifc.index = s.nextIndex
		t.interfaces = append(t.interfaces, ifc)
		for i := range ifc.receivers {
			s.crew.Start(ifc.receivers[i].loop)
			s.crew.Start(ifc.ports[i].loop)
		}
		s.crew.Start(ifc.loop)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ifc, nil
}

// Name returns the name under which the device was attached.
func (i *Interface) Name() string { return i.name }

// Index returns the interface number. "lo" is 1.
func (i *Interface) Index() int { return i.index }

// MAC returns the link-layer address. It is zero if the medium has none.
func (i *Interface) MAC() wire.MAC { return i.mac }

// MTU returns the size of the largest IP packet, in bytes.
func (i *Interface) MTU() int { return i.mtu }

// ipv4MTU returns the size of the largest IPv4 packet. The MTU of the loopback interface
// is 65536 as on Linux, one more than the IPv4 length field can hold.
func (i *Interface) ipv4MTU() int { return min(i.mtu, wire.MaxIPv4) }

// IsLoopback reports whether the interface is "lo".
func (i *Interface) IsLoopback() bool { return i.loopback }

// Device returns the attached device.
func (i *Interface) Device() link.Device { return i.device }

// Down returns a channel that is closed when the first queue of the device delivers no
// more frames: the device has failed, or either end was closed.
func (i *Interface) Down() <-chan struct{} { return i.receivers[0].ended }

// Interfaces returns the interfaces in order of index. The first is "lo".
func (s *Stack) Interfaces() []*Interface { return slices.Clone(s.tables.Load().interfaces) }

// Detach closes the device and removes the interface with its addresses and routes. Errors: ErrInvalid for "lo",
// ErrNoInterface if it is already detached, or the error of closing the device.
func (i *Interface) Detach() error {
	if i.loopback {
		return ErrInvalid
	}
	err := i.stack.change(func(t *tables) error {
		n := len(t.interfaces)
		t.interfaces = slices.DeleteFunc(t.interfaces, func(x *Interface) bool { return x == i })
		if len(t.interfaces) == n {
			return ErrNoInterface
		}
		t.addresses = slices.DeleteFunc(t.addresses, func(a Address) bool { return a.Interface == i.name })
		t.tentative = slices.DeleteFunc(t.tentative, func(a Address) bool { return a.Interface == i.name })
		t.routes = slices.DeleteFunc(t.routes, func(r Route) bool { return r.Interface == i.name })
		delete(t.learned, i.index)
		delete(t.detours, i.index)
		return nil
	})
	if err != nil {
		return err
	}
	err = i.close()
	i.stack.onEach(func(sh *shard) { sh.unlink(i) })
	for _, r := range i.receivers {
		i.stack.retired.merge(&r.tally)
	}
	return err
}

// close closes the device and waits until the receivers and the loop have ended.
func (i *Interface) close() error {
	err := i.device.Close()
	close(i.done)
	for _, r := range i.receivers {
		<-r.ended
	}
	<-i.ended
	if errors.Is(err, link.ErrClosed) {
		return nil
	}
	return err
}

func (i *Interface) addCounters(c *Counters) {
	for _, r := range i.receivers {
		r.tally.addTo(c)
	}
}

// CountersIPv6 returns the counts of IPv6 packets that arrived on this interface, up to the checks of the IP header.
// Counters of later stages and of output are 0.
func (i *Interface) CountersIPv6() (c Counters) {
	for _, r := range i.receivers {
		r.tally.addIPv6To(&c)
	}
	return c
}

// post queues f to be run by the loop and returns at once.
func (i *Interface) post(f func(*ifaceLoop)) {
	i.mu.Lock()
	i.requests = append(i.requests, f)
	i.mu.Unlock()
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// randomMAC returns a locally administered unicast address.
func (s *Stack) randomMAC() wire.MAC {
	r := shared.Mix(uint64(time.Now().UnixNano())*s.seed, s.seed)
	return wire.MAC{0x02, byte(r), byte(r >> 8), byte(r >> 16), byte(r >> 24), byte(r >> 32)}
}
