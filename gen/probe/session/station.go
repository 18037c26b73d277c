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
// With xdp, each queue of the interface has a lane: answers come to any of them. With
// tc each processor has one: where the other end of the interface is on the same machine,
// answers come to the processor that has asked. In both a program takes answers away from
// the kernel. With the other methods one receiver gets copies of them all, and there is a
// sender for each processor.
type station struct {
	name      string
	senders   []method.Sender
	receivers []method.Receiver
}

// Up to how many queues of an interface xdp is chosen for, since each has memory of its
// own and is looked at; and how many lanes tc has at the most.
const (
	mostQueues = 16
	mostShares = 16
)

func (o *Options) openStation(c *probe.Config) (*station, error) {
	own := !isKernels(c.Source)
	if own {
		o.note(fmt.Sprintf("%v is not an address of this host: the router has to know that it is on %s, since nobody answers ARP for it", c.Source, o.Interface))
	}
	s, name, err := o.choose(c)
	if err != nil {
		return nil, &Refusal{err.Error(), "choose another with --method"}
	}
	// The kernel ends the connections that it knows nothing of, if it gets to see
	// their SYN-ACKs and has the address.
	c.Reset = c.Kind == probe.SYN && (own || name == "xdp" || name == "tc")
	return s, nil
}

// choose opens what the user names, or else the fastest that can be had: xdp where the
// device itself takes frames out of our memory, tc, ring.
func (o *Options) choose(c *probe.Config) (s *station, name string, err error) {
	if o.Method != "" {
		s, err = open(o.Method, o.Interface, c, method.BestCopying)
		return s, o.Method, err
	}
	if queues, _ := afxdp.Queues(o.Interface); queues <= mostQueues {
		if s, err = open("xdp", o.Interface, c, method.ForceZeroCopy); err == nil {
			return s, "xdp", nil
		}
	}
	if s, err = open("tc", o.Interface, c, method.BestCopying); err == nil {
		return s, "tc", nil
	}
	o.note(fmt.Sprintf("tc cannot be had, and ring is used instead: %v", err))
	s, err = open("ring", o.Interface, c, method.BestCopying)
	return s, "ring", err
}

// open opens senders and receivers of a method.
func open(name, dev string, c *probe.Config, copying method.Copying) (s *station, err error) {
	m, err := method.ByName(name)
	if err != nil {
		return nil, err
	}
	if m.Listen == nil || m.Layer != method.Frame {
		return nil, fmt.Errorf("the method %s cannot probe; tc, xdp, ring and packet can", name)
	}
	senders := runtime.GOMAXPROCS(0)
	receivers := 1
	switch name {
	case "xdp":
		receivers, _ = afxdp.Queues(dev)
		senders = receivers
	case "tc":
		senders = min(senders, mostShares)
		receivers = senders
	}
	config := method.Config{Interface: dev, Size: c.FrameLen(), Match: answers(c), Queues: receivers, Copying: copying}
	s = &station{name: dev}
	if err := s.open(m, config, senders); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// open opens the receivers first, since what comes meanwhile is lost otherwise.
func (s *station) open(m method.Method, config method.Config, senders int) error {
	for config.Queue = range config.Queues {
		r, err := m.Listen(config)
		if err != nil {
			return err
		}
		s.receivers = append(s.receivers, r)
	}
	for config.Queue = range senders {
		tx, err := m.Open(config)
		if err != nil {
			return err
		}
		s.senders = append(s.senders, tx)
	}
	return nil
}

// answers are the rules for what may be one: what else comes to this host, other ICMP
// among it, is the kernel's.
func answers(c *probe.Config) []match.Rule {
	local := netip.PrefixFrom(c.Source, c.Source.BitLen())
	icmp := wire.ProtoICMP
	if c.Source.Is6() {
		icmp = wire.ProtoICMPv6
	}
	ports := match.Ports{First: c.LocalPorts.First, Last: c.LocalPorts.Last}
	answer := match.Rule{Protocol: icmp, Local: local, ICMP: match.ICMP{Kind: match.EchoReply, ID: c.ID}}
	quote := match.ICMP{Kind: match.Quote, Quoted: icmp, ID: c.ID}
	switch c.Kind {
	case probe.SYN:
		answer = match.Rule{Protocol: wire.ProtoTCP, Local: local, Ports: ports}
		quote = match.ICMP{Kind: match.Quote, Quoted: wire.ProtoTCP, Ports: ports}
	case probe.UDP:
		answer = match.Rule{Protocol: wire.ProtoUDP, Local: local, Ports: ports}
		quote = match.ICMP{Kind: match.Quote, Quoted: wire.ProtoUDP, Ports: ports}
	}
	return []match.Rule{answer, {Protocol: icmp, Local: local, ICMP: quote}}
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
