package probe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"loam/gen/method"
	"loam/link"
	"loam/wire"
)

// Every kind of probe finds every address exactly once, over both families.
func TestAllAddressesAreFound(t *testing.T) {
	for _, c := range []struct {
		why   string
		kind  Kind
		list  []string
		asked uint64
		says  Answer
		rtt   bool
	}{
		{"echo", Echo, []string{"10.0.0.0/19"}, 8192, EchoReply, true},
		{"echo, IPv6", Echo, []string{"fd00::/116"}, 4096, EchoReply, true},
		{"SYN", SYN, []string{"10.0.0.0/21"}, 4096, SYNACK, true},
		{"SYN, IPv6", SYN, []string{"fd00::/120"}, 512, SYNACK, true},
		{"UDP", UDP, []string{"10.0.0.0/21"}, 4096, Data, false},
		{"UDP, IPv6", UDP, []string{"fd00::/120"}, 512, Data, false},
		{"one address", Echo, []string{"10.0.0.1"}, 1, EchoReply, true},
	} {
		fake(t, func(t *testing.T) {
			h := host{t: t}
			n := network{t: t, delay: time.Millisecond, answer: h.reply}
			cfg := config(t, c.kind, c.list...)
			cfg.Payload = []byte("odd")
			if c.kind != UDP {
				cfg.Payload = nil
			}
			found, sum, err := n.run(t.Context(), cfg)
			if err != nil || !sum.Finished || sum.Asked != c.asked || sum.Sent != c.asked || sum.Found() != c.asked || uint64(len(found)) != c.asked {
				t.Errorf("%s: asked %d, sent %d, found %d, %d results, finished %v, %v; want %d of each", c.why, sum.Asked, sum.Sent, sum.Found(), len(found), sum.Finished, err, c.asked)
			}
			type key struct {
				addr netip.Addr
				port uint16
			}
			once := map[key]bool{}
			for _, r := range found {
				if _, ok := cfg.Addresses.Index(r.Addr); !ok || once[key{r.Addr, r.Port}] || r.Answer != c.says || r.HopLimit != 60 || r.From != r.Addr {
					t.Fatalf("%s: %+v", c.why, r)
				}
				if c.rtt != (r.RTT >= time.Millisecond) || r.RTT > time.Second {
					t.Fatalf("%s: a round trip of %v", c.why, r.RTT)
				}
				once[key{r.Addr, r.Port}] = true
			}
		})
	}
}

// Only targets that have not answered are probed again. At the end, those that never answer have been probed once
// plus once per retry.
func TestRetriesProbeSilentTargets(t *testing.T) {
	fake(t, func(t *testing.T) {
		h := host{t: t}
		times := map[uint32]int{}
		n := network{t: t, answer: func(b []byte) [][]byte {
			a := asked(b)
			times[a]++
			// One quarter of the targets answers the first probe, one quarter only the second, one quarter only the
			// third, and one quarter never answers.
			if class := int(a % 4); class == 3 || times[a] <= class {
				return nil
			}
			return h.reply(b)
		}}
		cfg := config(t, Echo, "10.0.0.0/22")
		cfg.Retries = 2
		found, sum, err := n.run(t.Context(), cfg)
		if err != nil || len(found) != 768 || sum.Found() != 768 || !sum.Finished {
			t.Errorf("%d found, %+v, %v", len(found), sum, err)
		}
		if want := []uint64{1024, 768, 512}; len(sum.PassSent) != 3 || sum.PassSent[0] != want[0] || sum.PassSent[1] != want[1] || sum.PassSent[2] != want[2] {
			t.Errorf("passes sent %d, want %d", sum.PassSent, want)
		}
		for a, k := range times {
			if want := min(int(a%4)+1, 3); k != want {
				t.Errorf("address %#x was asked %d times, want %d", a, k, want)
			}
		}
	})
}

// Duplicates are counted but not reported. Forged and foreign frames are counted by reason and otherwise ignored.
func TestNoiseIsCounted(t *testing.T) {
	fake(t, func(t *testing.T) {
		h := host{t: t}
		n := network{t: t, answer: func(b []byte) [][]byte {
			good := h.reply(b)[0]
			wrong := append([]byte(nil), good...)
			wrong[len(wrong)-1] ^= 1 // changes the hash over tag and time
			other := append([]byte(nil), good...)
			other[wire.EthernetLen+wire.IPv4MinLen+icmpRest] ^= 1 // the identifier, as if the reply were for another program
			return [][]byte{wrong, other, good, good, good[:20]}
		}}
		found, sum, err := n.run(t.Context(), config(t, Echo, "10.0.0.0/24"))
		if err != nil || len(found) != 256 || sum.Duplicates != 256 || sum.Forged != 256 || sum.Foreign != 256 || sum.Malformed != 256 {
			t.Errorf("%d found, %+v, %v", len(found), sum, err)
		}
	})
}

// A closed port counts as an answer, so the target is not probed again. The prober reports it if the user wants all
// answers.
func TestClosedPorts(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		says Answer
	}{{SYN, Reset}, {UDP, PortUnreachable}} {
		for _, all := range []bool{false, true} {
			fake(t, func(t *testing.T) {
				h := host{t: t, closed: func(port uint16) bool { return port == 53 }}
				n := network{t: t, answer: h.reply}
				cfg := config(t, c.kind, "10.0.0.0/24")
				cfg.All, cfg.Retries = all, 1
				found, sum, err := n.run(t.Context(), cfg)
				want := 256
				if all {
					want = 512
				}
				if err != nil || len(found) != want || sum.Found() != 256 || sum.Answers[c.says] != 256 || sum.Sent != 512 {
					t.Errorf("%v, all %v: %d results, %+v, %v", c.kind, all, len(found), sum, err)
				}
			})
		}
	}
}

// An ICMP error from a router is no answer of the target, so the target is probed again.
func TestErrorsOnTheWay(t *testing.T) {
	fake(t, func(t *testing.T) {
		router := netip.MustParseAddr("192.168.7.254")
		n := network{t: t, answer: func(b []byte) [][]byte {
			return [][]byte{unreachable(router, path4.Source, wire.CodeHostUnreachable, b[wire.EthernetLen:])}
		}}
		cfg := config(t, Echo, "10.0.0.0/24")
		cfg.Retries, cfg.All = 1, true
		found, sum, err := n.run(t.Context(), cfg)
		if err != nil || sum.Sent != 512 || sum.Found() != 0 || sum.Answers[Unreachable] != 512 || len(found) != 512 {
			t.Errorf("%d results, %+v, %v", len(found), sum, err)
		}
		for _, r := range found {
			if r.From != router || r.Code != wire.CodeHostUnreachable || r.RTT >= 0 || r.Addr == router {
				t.Fatalf("%+v", r)
			}
		}
	})
}

// The number of probes over the whole run matches the rate exactly.
func TestRate(t *testing.T) {
	fake(t, func(t *testing.T) {
		h := host{t: t}
		n := network{t: t, answer: h.reply}
		cfg := config(t, Echo, "10.0.0.0/20")
		cfg.Rate = 1000
		began := time.Now()
		_, sum, err := n.run(t.Context(), cfg)
		took := time.Since(began)
		if err != nil || took < 4085*time.Millisecond || took > 4200*time.Millisecond || sum.Found() != 4096 {
			t.Errorf("4096 probes at 1000 a second took %v, %v, %+v", took, err, sum)
		}
	})
}

// The shards of a run divide its addresses and ports among them.
func TestShards(t *testing.T) {
	total := map[netip.Addr]int{}
	for shard := range uint64(3) {
		fake(t, func(t *testing.T) {
			h := host{t: t}
			n := network{t: t, answer: h.reply}
			cfg := config(t, Echo, "10.0.0.0/22")
			cfg.Shard, cfg.Shards = shard, 3
			found, sum, err := n.run(t.Context(), cfg)
			if err != nil || len(found) < 341 || len(found) > 342 || sum.Asked != uint64(len(found)) {
				t.Errorf("shard %d: %d found, %+v, %v", shard, len(found), sum, err)
			}
			for _, r := range found {
				total[r.Addr]++
			}
		})
	}
	if len(total) != 1024 {
		t.Errorf("the shards found %d addresses, want 1024", len(total))
	}
}

// An interrupted run reports the position at which to resume, and the next run sends the remaining probes.
func TestResume(t *testing.T) {
	fake(t, func(t *testing.T) {
		h := host{t: t}
		n := network{t: t, answer: h.reply}
		cfg := config(t, Echo, "10.0.0.0/20")
		cfg.Rate = 1000
		var marks []Checkpoint
		cfg.Mark = func(c Checkpoint) error { marks = append(marks, c); return nil }
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		first, sum, err := n.run(ctx, cfg)
		if err != nil || sum.Finished || sum.Stopped.Next != sum.Sent || uint64(len(first)) != sum.Sent {
			t.Fatalf("%d found, %+v, %v", len(first), sum, err)
		}
		if len(marks) < 3 || marks[len(marks)-1] != sum.Stopped || marks[0].Next != 0 || marks[1].Next > 1000 {
			t.Errorf("places %+v, stopped at %+v", marks, sum.Stopped)
		}
		cfg.From = &sum.Stopped
		cfg.Answered = func(yield func(netip.Addr, uint16)) {
			for _, r := range first {
				yield(r.Addr, r.Port)
			}
		}
		second, sum, err := n.run(t.Context(), cfg)
		if err != nil || !sum.Finished || len(first)+len(second) != 4096 {
			t.Errorf("%d and %d found, %+v, %v", len(first), len(second), sum, err)
		}
		want := fmt.Sprintf("4096 asked, %d found (100 %% of the rest; %d have answered before)\n", len(second), len(first))
		if got := sum.Text(); !strings.HasPrefix(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
}

// With Config.Most, the prober sends only this number of probes, the first ones of the order. It ignores known answers to
// other probes.
func TestMost(t *testing.T) {
	fake(t, func(t *testing.T) {
		h := host{t: t}
		n := network{t: t, answer: h.reply}
		cfg := config(t, Echo, "10.0.0.0/20")
		all, _, err := n.run(t.Context(), cfg)
		if err != nil || len(all) != 4096 {
			t.Fatal(len(all), err)
		}
		cfg.Most = 100
		cfg.Answered = func(yield func(netip.Addr, uint16)) {
			for _, r := range all[50:] { // an earlier run with a larger Most has probed further targets
				yield(r.Addr, r.Port)
			}
		}
		some, sum, err := n.run(t.Context(), cfg)
		if err != nil || !sum.Finished || sum.Asked != 100 || len(some)+int(sum.Known) != 100 || sum.Known < 50 || sum.Known > 100 {
			t.Errorf("%d found, %+v, %v", len(some), sum, err)
		}
	})
}

// The scheduler is never ahead of a receiver by more than the window. Therefore a receiver that polls its ring only
// every 10 ms, in a lane of its own, never finds more answers than that.
func TestWindow(t *testing.T) {
	fake(t, func(t *testing.T) {
		h := host{t: t}
		n := network{t: t, answer: h.reply, look: 10 * time.Millisecond, apart: true}
		cfg := config(t, Echo, "10.0.0.0/20")
		cfg.Window = 2 * burstSize
		_, sum, err := n.run(t.Context(), cfg)
		if err != nil || sum.Found() != 4096 || n.most > cfg.Window || n.most < burstSize {
			t.Errorf("%d found, up to %d answers waited in the ring, %v", sum.Found(), n.most, err)
		}
	})
}

var errBroken = errors.New("the cable is cut")

// A target that answers with a SYN-ACK gets a reset each time, even if it repeats the SYN-ACK. Other targets get
// none.
func TestResets(t *testing.T) {
	fake(t, func(t *testing.T) {
		h := host{t: t, closed: func(port uint16) bool { return port == 53 }}
		resets := map[uint32]int{}
		n := network{t: t, answer: func(b []byte) [][]byte {
			if !isReset(t, b) {
				out := h.reply(b)
				return append(out, out...) // every answer is duplicated
			}
			resets[asked(b)]++
			return nil
		}}
		cfg := config(t, SYN, "10.0.0.0/22")
		cfg.Reset = true
		_, sum, err := n.run(t.Context(), cfg)
		if err != nil || sum.Answers[SYNACK] != 1024 || sum.Answers[Reset] != 1024 || sum.Resets != 2048 || len(resets) != 1024 {
			t.Errorf("%d targets were sent a reset, %+v, %v", len(resets), sum, err)
		}
		for a, n := range resets {
			if n != 2 {
				t.Errorf("%#x was sent %d resets", a, n)
			}
		}
	})
}

// isReset reports whether b is a reset, and verifies it: in SYN-RECEIVED, a host accepts a reset only with the next
// expected sequence number (RFC 9293 section 3.10.7.4).
func isReset(t *testing.T, b []byte) bool {
	ip, rest, err := wire.ParseIPv4(b[wire.EthernetLen:])
	if err != nil || ip.Protocol != wire.ProtoTCP {
		return false
	}
	h, payload, err := wire.ParseTCP(rest)
	if err != nil || !h.Flags.Has(wire.RST) {
		return false
	}
	c := config(t, SYN, "10.0.0.0/24")
	tag := (&tagger{c.Key, SYN}).tag(question{ip.Dst, h.DstPort})
	if h.Flags != wire.RST || len(payload) != 0 || !wire.TCPChecksumOK(rest, ip.Src, ip.Dst) || h.Seq != initialSequence(tag)+1 || h.SrcPort != c.LocalPorts.of(tag) {
		t.Errorf("not a reset that anybody believes: %+v", h)
	}
	return true
}

// A failing sender ends the run, which returns the sender's error.
func TestSenderFails(t *testing.T) {
	fake(t, func(t *testing.T) {
		rx := &pipeReceiver{in: make(chan *link.Frame)}
		sum, err := Run(t.Context(), config(t, Echo, "10.0.0.0/20"), []method.Sender{&pipeSender{fail: errBroken}}, []method.Receiver{rx})
		if !errors.Is(err, errBroken) || sum.Finished || sum.Sent != 0 {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}

// An error from Record ends the run, as an error from a sender does.
func TestRecorderFails(t *testing.T) {
	fake(t, func(t *testing.T) {
		h := host{t: t}
		n := network{t: t, answer: h.reply}
		cfg := config(t, Echo, "10.0.0.0/20")
		cfg.Rate = 1000
		cfg.Mark = func(Checkpoint) error { return errBroken }
		if _, sum, err := n.run(t.Context(), cfg); !errors.Is(err, errBroken) || sum.Finished {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for why, change := range map[string]func(*Config){
		"nobody":           func(c *Config) { c.Addresses = addresses(t) },
		"the other family": func(c *Config) { c.Path = path6 },
		"ports of echoes":  func(c *Config) { c.Ports = []uint16{1} },
		"SYN to no port":   func(c *Config) { c.Kind = SYN },
		"no source port":   func(c *Config) { c.Kind, c.Ports = SYN, []uint16{80} },
		"a long payload":   func(c *Config) { c.Payload = make([]byte, MaxPayload+1) },
		"a small window":   func(c *Config) { c.Window = 1 },
		"no such shard":    func(c *Config) { c.Shard, c.Shards = 3, 3 },
		"a negative rate":  func(c *Config) { c.Rate = -1 },
	} {
		cfg := config(t, Echo, "10.0.0.0/24")
		change(cfg)
		if _, err := Run(t.Context(), cfg, []method.Sender{&pipeSender{}}, []method.Receiver{&pipeReceiver{}}); err == nil {
			t.Errorf("%s: no error", why)
		}
	}
}
