package ip

import (
	"testing"
	"time"

	"loam/wire"
)

func testIDs(seed byte) *IDs { return NewIDs([32]byte{seed}) }

func TestIDsOfOnePairDoNotRepeat(t *testing.T) {
	g := testIDs(1)
	src, dst := addr("192.0.2.1"), addr("192.0.2.2")
	seen := map[uint16]bool{}
	for range 65536 {
		id := uint16(g.Next(0, src, dst, wire.ProtoUDP))
		if seen[id] {
			t.Fatalf("%d comes again after %d packets", id, len(seen))
		}
		seen[id] = true
	}
}

// At up to ten packets per second, identifications do not repeat within the 30 s for which fragments are
// kept.
func TestIDsDoNotRepeatSoonAtLowRates(t *testing.T) {
	g := testIDs(2)
	src, dst := addr("192.0.2.1"), addr("192.0.2.2")
	last := map[uint16]time.Duration{}
	for now := time.Duration(0); now < 10*time.Minute; now += 100 * time.Millisecond {
		id := uint16(g.Next(now, src, dst, wire.ProtoUDP))
		if before, ok := last[id]; ok && now-before < 30*time.Second {
			t.Fatalf("%d comes again after %v", id, now-before)
		}
		last[id] = now
	}
}

func TestIDsDependOnThePairAndTheSecret(t *testing.T) {
	src, dst := addr("192.0.2.1"), addr("192.0.2.2")
	first := testIDs(3).Next(0, src, dst, wire.ProtoUDP)
	for what, id := range map[string]uint32{
		"secret":      testIDs(4).Next(0, src, dst, wire.ProtoUDP),
		"source":      testIDs(3).Next(0, addr("192.0.2.3"), dst, wire.ProtoUDP),
		"destination": testIDs(3).Next(0, src, addr("192.0.2.3"), wire.ProtoUDP),
		"protocol":    testIDs(3).Next(0, src, dst, wire.ProtoICMP),
	} {
		if id == first {
			t.Errorf("another %s makes no difference", what)
		}
	}
	six, seven := addr("2001:db8::6"), addr("2001:db8::7")
	if testIDs(3).Next(0, six, seven, wire.ProtoUDP) == testIDs(3).Next(0, seven, six, wire.ProtoUDP) {
		t.Error("the direction makes no difference")
	}
	if testIDs(3).Next(0, src, dst, wire.ProtoUDP) != first {
		t.Error("the same seed gives another identification")
	}
}

// An observer of a shared counter cannot infer how many packets were sent to other hosts. Over time, the
// random increments exceed that number.
func TestIDsAdvanceByARandomAmountOverTime(t *testing.T) {
	g := testIDs(5)
	src, dst := addr("192.0.2.1"), addr("192.0.2.2")
	steps := map[uint32]bool{}
	last := g.Next(0, src, dst, wire.ProtoUDP)
	for i := range 100 {
		id := g.Next(time.Duration(i+1)*time.Second, src, dst, wire.ProtoUDP)
		if step := id - last; step < 1 || step > 1001 {
			t.Fatalf("a step of %d in a second", step)
		} else {
			steps[step] = true
		}
		last = id
	}
	if len(steps) < 80 {
		t.Errorf("only %d different steps in 100", len(steps))
	}
}

func TestIDsDoNotAllocate(t *testing.T) {
	g := testIDs(6)
	src, dst := addr("192.0.2.1"), addr("192.0.2.2")
	now := time.Duration(0)
	if n := testing.AllocsPerRun(100, func() {
		now += time.Millisecond
		g.Next(now, src, dst, wire.ProtoUDP)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkIDs(b *testing.B) {
	g := testIDs(7)
	src, dst := addr("192.0.2.1"), addr("192.0.2.2")
	for b.Loop() {
		g.Next(0, src, dst, wire.ProtoUDP)
	}
}
