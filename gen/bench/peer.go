//go:build linux

package bench

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Peer returns a function that reads the counter at the other end of an interface. For a veth interface, the kernel can
// name the peer, even if that is in another network namespace to which the caller has access. For any other interface
// Peer returns ErrNoPeer, and the caller can use only the interface's own counter: see Own.
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

// ErrNoPeer reports that the counter at the other end cannot be read from this machine.
var ErrNoPeer = errors.New("the peer's counters cannot be read from here")

// Own returns a function that reads the number of frames and bytes that an interface has sent, from the interface's own
// counter.
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

// linkIn returns an interface in another network namespace. namespace is the ID of that namespace in the current one; a
// negative ID means the current namespace. RTM_GETLINK takes it as IFLA_TARGET_NETNSID (rtnetlink(7)).
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
