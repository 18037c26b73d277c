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
	"loam/stack/ip"
	"loam/stack/neigh"
	"loam/wire"
)

// Interface is a link that has been attached to a stack.
//
// Its loop owns what there is one of for each link: the neighbour cache, the
// DHCP client, what the link is told of multicast groups. Others send it what it must know; it publishes the neighbours
// that are resolved.
type Interface struct {
	stack       *Stack
	name        string
	index       int
	device      link.Device
	medium      link.Medium
	mac         wire.MAC
	mtu         int
	offloads    link.Offloads
	loopback    bool
	acceptAny   bool
	ipv6        bool
	noDetection bool
	groupless   bool // no link is told of groups

	receivers []*receiver
	ports     []*txPort

	neighbours  atomic.Pointer[map[netip.Addr]*neighbour] // replaced by loop
	arpIn       chan wire.ARP                             // from receivers; never closed; full: dropped and counted
	ndIn        chan neigh.Message                        // from receivers; never closed; full: dropped and counted
	wanted      chan neighMessage                         // from shards; never closed; full: the packets that wait are dropped
	leases      chan []byte                               // DHCP messages from receivers; never closed; full: dropped, DHCP repeats
	dhcp6In     chan []byte                               // DHCPv6 messages from receivers; never closed; full: dropped, they are asked for again
	asking6     atomic.Bool                               // a client of DHCPv6 runs
	leasing     atomic.Bool                               // a DHCP client runs
	routersIn   chan routerMessage                        // from receivers; never closed; full: dropped and counted
	groupsIn    chan wire.GroupMessage                    // from shards; never closed; full: dropped and counted
	redirectsIn chan redirectMessage                      // from receivers and shards; never closed; full: dropped and counted
	routing     atomic.Int32                              // its part in router discovery: routerless and so on

	receptions receptions // of groups, by who wants them

	mu       sync.Mutex         // guards requests
	requests []func(*ifaceLoop) // from anybody, run in order by loop
	wake     chan struct{}      // one place: rung by who adds a request, never closed
	done     chan struct{}      // closed by close
	ended    chan struct{}      // closed by loop
}

// InterfaceConfig says how a device is attached. The zero value attaches it
// under the device's name.
type InterfaceConfig struct {
	Name string   // empty: the device's
	MAC  wire.MAC // zero: the device's, or a random locally administered one
	MTU  int      // zero: the device's; never above it
	// AcceptAny has the interface accept packets to any address: what no socket
	// is for goes to the stack's forwarder.
	AcceptAny bool
	// NoIPv6 leaves the interface without IPv6: it has no link-local address, and takes
	// no packets.
	NoIPv6 bool
	// NoDetection has addresses of IPv6 ours at once: not tried for a second, in
	// which another host may object (RFC 4862 section 5.4).
	NoDetection bool
}

// Bounds of MTU: RFC 791 has every host take 68 bytes, RFC 1122 wants 576 to be
// reassembled; below that nothing useful works.
const minMTU = 576

// Attach brings a device into the stack, which owns it from now on and closes
// it when the interface is detached or the stack closed. Errors: ErrExists when
// the name is taken, ErrInvalid for an MTU below 576, ErrClosed.
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

// Name is the name under which the device was attached.
func (i *Interface) Name() string { return i.name }

// Index is the number of the interface, 1 for "lo".
func (i *Interface) Index() int { return i.index }

// MAC is the link-layer address; zero where the medium has none.
func (i *Interface) MAC() wire.MAC { return i.mac }

// MTU is the largest IP packet in bytes.
func (i *Interface) MTU() int { return i.mtu }

// ipv4MTU is the largest IPv4 packet: the loopback's MTU, as on Linux, is one
// byte more than the length field of IPv4 can say.
func (i *Interface) ipv4MTU() int { return min(i.mtu, wire.MaxIPv4) }

// IsLoopback reports whether this is "lo".
func (i *Interface) IsLoopback() bool { return i.loopback }

// Device is the device that was attached.
func (i *Interface) Device() link.Device { return i.device }

// Down is closed when nothing comes from the device any more, or from the first of its queues:
// it was closed, by whichever end, or has failed.
func (i *Interface) Down() <-chan struct{} { return i.receivers[0].ended }

// Interfaces lists the interfaces in order of index; the first is "lo".
func (s *Stack) Interfaces() []*Interface { return slices.Clone(s.tables.Load().interfaces) }

// Detach closes the device and removes the interface with its addresses and
// routes.
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

// close closes the device and waits until nothing comes from it any more.
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

// CountersIPv6 has how much of what is counted before a packet is given to its protocol was of
// IPv6, and came by this interface; what is counted later, or is sent, is 0.
func (i *Interface) CountersIPv6() (c Counters) {
	for _, r := range i.receivers {
		r.tally.addIPv6To(&c)
	}
	return c
}

// post has f run by the loop, and does not wait for it.
func (i *Interface) post(f func(*ifaceLoop)) {
	i.mu.Lock()
	i.requests = append(i.requests, f)
	i.mu.Unlock()
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// randomMAC makes a locally administered unicast address.
func (s *Stack) randomMAC() wire.MAC {
	r := uint64(time.Now().UnixNano()) * s.seed
	r = mix(r, s.seed)
	return wire.MAC{0x02, byte(r), byte(r >> 8), byte(r >> 16), byte(r >> 24), byte(r >> 32)}
}
