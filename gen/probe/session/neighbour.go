//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"loam/gen/probe"
	"loam/wire"
)

// Targets on the same link each have an Ethernet address of their own. A first run of package probe finds these
// addresses. The actual run then probes only the targets that have answered the first.

// askNeighbours sends each target an ARP request or a neighbour solicitation. It returns the Ethernet addresses of the
// targets that have answered.
func (o *Options) askNeighbours(ctx context.Context, c *probe.Config) (map[netip.Addr]wire.MAC, error) {
	first := *c
	first.Kind, first.Ports, first.Payload, first.LocalPorts = probe.Neighbour, nil, nil, probe.Ports{}
	first.From, first.Answered, first.Most, first.Shard, first.Shards, first.All, first.Reset = nil, nil, 0, 0, 0, false, false
	first.Wait = min(first.Wait, neighbourWait)
	if first.Wait == 0 {
		first.Wait = neighbourWait
	}
	found := make(map[netip.Addr]wire.MAC)
	first.Record = func(rs []probe.Result) error {
		for i := range rs {
			found[rs[i].Addr] = rs[i].MAC
		}
		return nil
	}
	s, err := open("ring", o.Interface, &first, 0)
	if err != nil {
		return nil, &Refusal{err.Error(), "targets on the same link need it"}
	}
	first.Losses = s.losses
	sum, err := probe.Run(ctx, &first, s.senders, s.receivers)
	if err = errors.Join(err, s.close()); err != nil {
		return nil, err
	}
	o.note(fmt.Sprintf("the targets are neighbours on %s: %d of %d have an Ethernet address, and only these are asked", o.Interface, len(found), sum.Asked))
	return found, nil
}

// neighbourWait is the time to wait for late answers at the end of the first run.
const neighbourWait = probe.DefaultRetryAfter
