package probe

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"loam/gen/probe/target"
)

// space is the set of all questions of a run: each address with each port. A permutation puts the questions in a random
// order, and the shards get them in turn. Within a shard, questions are numbered by positions from 0:
//
//	number    address number × number of ports + index of the port
//	place     index of the number in the permutation
//	position  place / shards; the shard is place % shards
//
// All three can be computed from each other, in both directions. A space is immutable.
type space struct {
	addresses     *target.Set
	ports         []uint16 // ports in ascending order; a single 0 for Echo
	order         *target.Order
	shard, shards uint64
	size          uint64 // number of positions in this shard
}

// MaxQuestions is the maximum number of questions of a run or of a shard. The record of answers needs one bit per
// question, so at most one gigabyte.
const MaxQuestions = 1 << 33

// ErrTooManyQuestions is returned if there are more than MaxQuestions.
var ErrTooManyQuestions = errors.New("probe: too many questions for one run")

// newSpace returns the space of one shard. ports may be unsorted and may contain duplicates. If ports is empty, the
// only port is 0.
func newSpace(addresses *target.Set, ports []uint16, seed, shard, shards uint64) (*space, error) {
	if len(ports) == 0 {
		ports = []uint16{0}
	}
	ports = slices.Clone(ports)
	slices.Sort(ports)
	ports = slices.Compact(ports)
	if shards == 0 || shard >= shards {
		return nil, fmt.Errorf("probe: there is no shard %d of %d", shard, shards)
	}
	hi, all := bits.Mul64(addresses.Len(), uint64(len(ports)))
	if hi != 0 || all/shards > MaxQuestions {
		return nil, fmt.Errorf("%w: %d addresses times %d ports in %d shards, and a shard has at most %d",
			ErrTooManyQuestions, addresses.Len(), len(ports), shards, uint64(MaxQuestions))
	}
	s := &space{addresses: addresses, ports: ports, order: target.NewOrder(all, seed), shard: shard, shards: shards}
	if all > shard {
		s.size = (all - shard + shards - 1) / shards
	}
	return s, nil
}

// question is an address and, for kinds of probes with ports, a port.
type question struct {
	addr netip.Addr
	port uint16
}

// at returns the question at a position, which must be less than size.
func (s *space) at(position uint64) question {
	number := s.order.At(position*s.shards + s.shard)
	if len(s.ports) == 1 {
		return question{s.addresses.At(number), s.ports[0]}
	}
	n := uint64(len(s.ports))
	return question{s.addresses.At(number / n), s.ports[number%n]}
}

// position returns the position of q. ok is false if q is not part of the run, or belongs to another shard.
func (s *space) position(q question) (position uint64, ok bool) {
	number, ok := s.addresses.Index(q.addr)
	if !ok {
		return 0, false
	}
	port, ok := slices.BinarySearch(s.ports, q.port)
	if !ok {
		return 0, false
	}
	place := s.order.Position(number*uint64(len(s.ports)) + uint64(port))
	position = place / s.shards
	return position, place%s.shards == s.shard && position < s.size
}
