//go:build linux

package bench

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Peer finds the counter of whoever is at the other end of an interface. The
// kernel knows the peer of a veth, in another network namespace too if the caller
// may see into that; of any other interface ErrNoPeer is returned, and its own
// counter is what there is: see Own.
func Peer(name string) (func() (Count, error), error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("there is no interface %q: ip link lists those that there are", name)
	}
	a := link.Attrs()
	if link.Type() != "veth" || a.ParentIndex == 0 {
		return nil, ErrNoPeer
	}
	read := func() (Count, error) {
		peer, err := linkIn(a.ParentIndex, a.NetNsID)
		if err != nil {
			return Count{}, err
		}
		return received(peer), nil
	}
	if _, err := read(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPeer, err)
	}
	return read, nil
}

// ErrNoPeer says that the other end's counters cannot be read from here.
var ErrNoPeer = errors.New("the peer's counters cannot be read from here")

// Own reads what an interface has sent, by its own count.
func Own(name string) func() (Count, error) {
	return func() (Count, error) {
		link, err := netlink.LinkByName(name)
		if err != nil || link.Attrs().Statistics == nil {
			return Count{}, fmt.Errorf("%s does not count: %w", name, err)
		}
		s := link.Attrs().Statistics
		return Count{s.TxPackets, s.TxBytes}, nil
	}
}

func received(link netlink.Link) Count {
	s := link.Attrs().Statistics
	if s == nil {
		return Count{}
	}
	return Count{s.RxPackets, s.RxBytes}
}

// linkIn reads an interface of the namespace that has this number here; below 0
// is this one. RTM_GETLINK takes the number as IFLA_TARGET_NETNSID
// (rtnetlink(7)).
func linkIn(index, namespace int) (netlink.Link, error) {
	if namespace < 0 {
		return netlink.LinkByIndex(index)
	}
	request := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_ACK)
	message := nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index = int32(index)
	request.AddData(message)
	request.AddData(nl.NewRtAttr(unix.IFLA_TARGET_NETNSID, nl.Uint32Attr(uint32(namespace))))
	answers, err := request.Execute(unix.NETLINK_ROUTE, 0)
	if err != nil {
		return nil, err
	}
	if len(answers) != 1 {
		return nil, fmt.Errorf("%d interfaces have the index %d", len(answers), index)
	}
	return netlink.LinkDeserialize(nil, answers[0])
}
