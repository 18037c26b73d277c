//go:build linux

package session

import (
	"cmp"
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

// station holds the senders and receivers of a run.
//
// The method xdp uses one lane per interface queue, because answers can arrive on any queue. The method tc uses one
// lane per processor: if the other end of the interface is on the same machine, answers arrive on the processor that
// has sent the probe. With both methods, an eBPF program takes the answers away from the kernel. With the other
// methods, a single receiver gets copies of all answers, and there is one sender per processor.
type station struct {
	name      string
	senders   []method.Sender
	receivers []method.Receiver
}

// mostQueues is the maximum number of interface queues for which xdp is chosen automatically: each queue uses memory
// and is polled. mostShares is the maximum number of lanes for tc.
const (
	mostQueues = 16
	mostShares = 16
)

func (o *Options) openStation(c *probe.Config) (*station, error) {
	own := false
	for _, a := range c.Sources() {
		if !isKernels(a) {
			own = true
			o.note(fmt.Sprintf("%v is not an address of this host: the router has to know that it is on %s, since nobody answers ARP for it", a, o.Interface))
		}
	}
	s, name, err := o.choose(c)
	if err != nil {
		return nil, &Refusal{err.Error(), "choose another with --method"}
	}
	// The kernel sends resets for connections that it does not know. It cannot do so if the method takes the
	// SYN-ACKs away from it, or if the source address is not an address of the kernel. In these cases the run sends the
	// resets.
	c.Reset = c.Kind == probe.SYN && (own || name == "xdp" || name == "tc")
	return s, nil
}

// choose opens the senders and receivers of the method that the user has given. If none is given, it uses the fastest
// available one: xdp if the device supports zero copy, otherwise tc, otherwise ring.
func (o *Options) choose(c *probe.Config) (s *station, name string, err error) {
	if c.Kind == probe.Neighbour {
		if o.Method != "" && o.Method != "ring" && o.Method != "packet" {
			return nil, "", fmt.Errorf("the method %s would take answers of neighbours away from the kernel, which needs them; ring and packet do not", o.Method)
		}
		name = cmp.Or(o.Method, "ring")
		s, err = open(name, o.Interface, c, method.BestCopying)
		return s, name, err
	}
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

// open opens the senders and receivers of a method.
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

// open opens the receivers and then the senders, so that even the first answers are received.
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

// answers returns the match rules for frames that may be answers. All other traffic to this host, including other ICMP
// messages, is left to the kernel.
func answers(c *probe.Config) (all []match.Rule) {
	if c.Kind == probe.Neighbour {
		if c.Source.Is4() {
			return []match.Rule{{EtherType: wire.TypeARP}}
		}
		return []match.Rule{{EtherType: wire.TypeIPv6, Protocol: wire.ProtoICMPv6}}
	}
	for _, a := range c.Sources() {
		all = append(all, answersTo(c, a)...)
	}
	return all
}

// answersTo returns the match rules for frames that may be answers to probes from one source address.
func answersTo(c *probe.Config, source netip.Addr) []match.Rule {
	local := netip.PrefixFrom(source, source.BitLen())
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

// losses returns the number of frames that were lost because a receive ring, or a ring of the interface, was full. It
// does not include frames for which there was no receiver.
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

// close closes all senders and receivers. The interface then has its earlier configuration.
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
