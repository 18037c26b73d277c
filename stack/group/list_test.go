package group

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

// Every change that a List returns is applied to a Reception. The Receptions then agree with the List, and are empty
// when the List is.
func TestListChangesReceptions(t *testing.T) {
	groups := []netip.Addr{netip.MustParseAddr("239.1.1.1"), netip.MustParseAddr("239.1.1.2")}
	sources := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")}
	type place struct {
		group netip.Addr
		on    int
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		var list List[int]
		receptions := map[place]*Reception{}
		apply := func(c Change[int], err error) {
			if err != nil {
				return
			}
			at := place{c.Group, c.On}
			if receptions[at] == nil {
				receptions[at] = &Reception{}
			}
			c.Apply(receptions[at])
		}
		for range 200 {
			group, source, on, exclude := groups[r.IntN(2)], sources[r.IntN(3)], r.IntN(2), r.IntN(2) == 0
			switch r.IntN(6) {
			case 0:
				apply(list.Join(group, on))
			case 1:
				apply(list.Leave(group, on))
			case 2:
				apply(list.LeaveAny(group))
			case 3:
				apply(list.AddSource(group, source, on, exclude))
			case 4:
				apply(list.RemoveSource(group, source, on, exclude))
			case 5:
				f, err := CheckFilter(group, Filter{Exclude: exclude, Sources: sources[:r.IntN(4)]})
				if err != nil {
					t.Fatal(err)
				}
				apply(list.SetFilter(group, on, f))
			}
			for at, reception := range receptions {
				_, joined := list.Receives(at.group, at.on, source)
				if users := reception.Users(); users > 1 || joined != (users == 1) {
					t.Fatalf("seed %d: %v has %d users; member: %v", seed, at, users, joined)
				}
				for _, source := range sources {
					if received, _ := list.Receives(at.group, at.on, source); received != reception.Accepts(source) {
						t.Fatalf("seed %d: %v from %v: the socket receives: %v", seed, at, source, received)
					}
				}
			}
		}
		for c, ok := list.LeaveNewest(); ok; c, ok = list.LeaveNewest() {
			apply(c, nil)
		}
		for at, reception := range receptions {
			if reception.Users() != 0 || len(reception.Sources()) != 0 {
				t.Fatalf("seed %d: %v is left", seed, at)
			}
		}
	}
}
