//go:build linux

package session

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"

	"github.com/vishvananda/netlink"

	"loam/gen/method"
	"loam/gen/probe"
	"loam/link/afxdp"
	"loam/link/match"
	"loam/wire"
)

// station is what a run sends and receives by.
//
// With xdp, each queue of the interface has a lane: answers come to any of them. A
// program in the driver takes what may be answers away from the kernel. With the
// other methods one receiver gets copies of them all, and there is a sender for
// each processor.
type station struct {
	name      string
	senders   []method.Sender
	receivers []method.Receiver
}

// mostQueues is up to how many queues of an interface xdp is chosen for: each has
// memory of its own, and is looked at.
const mostQueues = 16

func (o *Options) openStation(c *probe.Config) (*station, error) {
	own := !isKernels(c.Source)
	if own {
		o.note(fmt.Sprintf("%v is not an address of this host: the router has to know that it is on %s, since nobody answers ARP for it", c.Source, o.Interface))
	}
	queues, _ := afxdp.Queues(o.Interface)
	name := o.Method
	if name == "" && queues <= mostQueues {
		name = "xdp"
	} else if name == "" {
		name = "ring"
	}
	s, err := open(name, o.Interface, queues, c)
	if err != nil && o.Method == "" && name == "xdp" {
		o.note(fmt.Sprintf("xdp cannot be had, and ring is used instead: %v", err))
		name = "ring"
		s, err = open(name, o.Interface, queues, c)
	}
	if err != nil {
		return nil, &Refusal{err.Error(), "choose another with --method"}
	}
	// The kernel ends the connections that it knows nothing of, if it gets to see
	// their SYN-ACKs and has the address.
	c.Reset = c.Kind == probe.SYN && (own || name == "xdp")
	return s, nil
}

// open opens senders and receivers of a method.
func open(name, dev string, queues int, c *probe.Config) (s *station, err error) {
	m, err := method.ByName(name)
	if err != nil {
		return nil, err
	}
	if m.Listen == nil || m.Layer != method.Frame {
		return nil, fmt.Errorf("the method %s cannot probe; xdp, ring and packet can", name)
	}
	s = &station{name: dev}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	receivers, senders := 1, runtime.GOMAXPROCS(0)
	if name == "xdp" {
		receivers, senders = queues, queues
	}
	config := method.Config{Interface: dev, Size: c.FrameLen(), Match: answers(c)}
	for config.Queue = range receivers {
		r, err := m.Listen(config)
		if err != nil {
			return nil, err
		}
		s.receivers = append(s.receivers, r)
	}
	for config.Queue = range senders {
		tx, err := m.Open(config)
		if err != nil {
			return nil, err
		}
		s.senders = append(s.senders, tx)
	}
	return s, nil
}

// answers are the rules for what may be one.
func answers(c *probe.Config) []match.Rule {
	local := netip.PrefixFrom(c.Source, c.Source.BitLen())
	icmp := match.Rule{Protocol: wire.ProtoICMP, Local: local}
	if c.Source.Is6() {
		icmp.Protocol = wire.ProtoICMPv6
	}
	ports := match.Ports{First: c.LocalPorts.First, Last: c.LocalPorts.Last}
	switch c.Kind {
	case probe.SYN:
		return []match.Rule{{Protocol: wire.ProtoTCP, Local: local, Ports: ports}, icmp}
	case probe.UDP:
		return []match.Rule{{Protocol: wire.ProtoUDP, Local: local, Ports: ports}, icmp}
	}
	return []match.Rule{icmp}
}

// losses are frames that found no room in our rings or in the interface's. Frames
// that nobody wanted are not among them.
func (s *station) losses() uint64 {
	var n uint64
	for _, r := range s.receivers {
		n += r.Drops()
	}
	if link, err := netlink.LinkByName(s.name); err == nil && link.Attrs().Statistics != nil {
		st := link.Attrs().Statistics
		n += st.RxMissedErrors + st.RxFifoErrors + st.RxOverErrors
	}
	return n
}

// close leaves the interface as it was.
func (s *station) close() error {
	var all []error
	for _, tx := range s.senders {
		all = append(all, tx.Close())
	}
	for _, r := range s.receivers {
		all = append(all, r.Close())
	}
	return errors.Join(all...)
}
