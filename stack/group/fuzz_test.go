package group

import (
	"testing"
	"time"

	"loam/wire"
)

// FuzzHost performs the actions and receives the messages encoded in the input. No message exceeds Config.Room or
// concerns a group that must not be reported, and after each event the host sends only a bounded number of messages.
//
// The first byte of the input selects the protocol. Each step has two bytes: the action and its argument, which
// is one of 64 groups, a time in quarters of a second, or the length of a received message. After a length follows the
// message; after the group of a filter follows the number of its sources.
func FuzzHost(f *testing.F) {
	query := []byte{0x11, 100, 0, 0, 0, 0, 0, 0}
	f.Add(append([]byte{0, 0, 1, 0, 2, 3, 8}, query...))
	f.Add([]byte{1, 0, 1, 2, 200, 1, 1, 2, 255})
	f.Add(append([]byte{0, 0, 1, 3, 12, 0x11, 100, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0, 2, 10, 1, 1, 3, 8}, query...))
	f.Add([]byte{0, 5, 1, 1, 5, 129, 3, 2, 1, 5, 1, 255, 2, 200, 5, 1, 4})
	f.Add(append([]byte{1, 5, 1, 255, 2, 9, 5, 2, 100, 3, 28, 130, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 20)...))
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) == 0 {
			return
		}
		s := newScript(t, wire.GroupProtocol(input[0]%2))
		for input = input[1:]; len(input) >= 2; {
			what, n := input[0]%6, input[1]
			input = input[2:]
			switch what {
			case 0:
				s.join(s.group(n % 64))
			case 1:
				s.leave(s.group(n % 64))
			case 2:
				s.now += time.Duration(n) * time.Second / 4
			case 3:
				n = min(n, byte(min(len(input), 255)))
				if m, err := wire.ParseGroupMessage(s.cfg.Protocol, input[:n]); err == nil {
					s.Receive(s.now, &m)
				}
				input = input[n:]
			case 4:
				s.Renew(s.now)
			case 5:
				if len(input) == 0 {
					return
				}
				s.Listen(s.now, s.group(n%64), Filter{Exclude: n >= 128, Sources: s.sources(input[0]%4, input[0])})
				input = input[1:]
			}
			s.Advance(s.now)
			s.wantBounded()
		}
	})
}

// wantBounded polls all messages that are due now, and checks their number and size.
func (s *script) wantBounded() {
	s.t.Helper()
	most := 9*len(s.members) + 3 // a safe bound: a member has at most three messages, or four records in two parts each
	for n := 0; ; n++ {
		m, ok := s.Poll(s.now)
		if !ok {
			break
		}
		if m.Len() > s.cfg.Room || n > most {
			s.t.Fatalf("message %d at once of %d bytes, of which there may be %d: %s", n, m.Len(), most, describe(&m))
		}
		for _, r := range m.Records {
			if !Reported(r.Group) {
				s.t.Fatalf("%v is told of", r.Group)
			}
		}
	}
	if s.Deadline() <= s.now {
		s.t.Fatalf("there is nothing to say at %v, when something was due at %v", s.now, s.Deadline())
	}
}
