package ip

import (
	"bytes"
	"errors"
	"testing"

	"loam/wire"
)

// bytesOf returns n bytes. Two parts of it at a distance of up to 64 kB differ after a few bytes.
func bytesOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i%251) ^ byte(i>>8)
	}
	return b
}

// cut returns all fragments.
func cut(t *testing.T, h wire.IPv4, payload []byte, mtu int) (headers []wire.IPv4, parts [][]byte) {
	t.Helper()
	h.PayloadLen = len(payload)
	f, err := Fragment(&h, payload, mtu)
	if err != nil {
		t.Fatalf("Fragment: %v", err)
	}
	for h, part, ok := f.Next(); ok; h, part, ok = f.Next() {
		h.Options = bytes.Clone(h.Options)
		headers, parts = append(headers, h), append(parts, part)
	}
	return headers, parts
}

func testHeader() wire.IPv4 {
	return wire.IPv4{ID: 7, TTL: 64, Protocol: wire.ProtoUDP, Src: addr("192.0.2.1"), Dst: addr("192.0.2.2")}
}

func TestFragmentsFitAndCoverThePayload(t *testing.T) {
	for _, size := range []int{0, 1, 7, 8, 9, 555, 556, 557, 1480, 1481, 3000, 65515} {
		for _, mtu := range []int{28, 35, 68, 576, 1500, 65535} {
			headers, parts := cut(t, testHeader(), bytesOf(size), mtu)
			at := 0
			for i, h := range headers {
				last := i == len(headers)-1
				if h.FragOffset != at || h.MoreFragment == last || h.PayloadLen != len(parts[i]) {
					t.Fatalf("%d bytes, MTU %d: fragment %d is %+v, want offset %d", size, mtu, i, h, at)
				}
				if h.Len()+len(parts[i]) > mtu || !last && len(parts[i])%8 != 0 {
					t.Fatalf("%d bytes, MTU %d: fragment %d has %d bytes", size, mtu, i, len(parts[i]))
				}
				at += len(parts[i])
			}
			if !bytes.Equal(bytes.Join(parts, nil), bytesOf(size)) {
				t.Fatalf("%d bytes, MTU %d: the parts are not the payload", size, mtu)
			}
		}
	}
}

func TestFragmentsAreAsLargeAsTheMTUAllows(t *testing.T) {
	_, parts := cut(t, testHeader(), bytesOf(4000), 1500)
	if len(parts) != 3 || len(parts[0]) != 1480 || len(parts[1]) != 1480 {
		t.Errorf("%d fragments, want 1480, 1480 and 1040 bytes", len(parts))
	}
}

func TestOptionsInFragments(t *testing.T) {
	h := testHeader()
	h.Options = []byte{
		uint8(wire.OptNop),
		uint8(wire.OptRecordRoute), 3, 4, // not copied into later fragments
		uint8(wire.OptRouterAlert), 4, 0, 0, // copied into every fragment
		uint8(wire.OptTimestamp), 4, 5, 0, // not copied into later fragments
	}
	headers, _ := cut(t, h, bytesOf(2000), 576)
	if !bytes.Equal(headers[0].Options, h.Options) {
		t.Errorf("the first fragment has options %v, want all", headers[0].Options)
	}
	for _, later := range headers[1:] {
		if !bytes.Equal(later.Options, []byte{uint8(wire.OptRouterAlert), 4, 0, 0}) {
			t.Errorf("a later fragment has options %v, want those that are copied", later.Options)
		}
	}
}

func TestFragmentOfAFragment(t *testing.T) {
	h := testHeader()
	h.FragOffset, h.MoreFragment = 1480, true
	headers, parts := cut(t, h, bytesOf(1480), 576)
	at := 1480
	for i, piece := range headers {
		if piece.FragOffset != at || !piece.MoreFragment {
			t.Errorf("fragment %d of a fragment in the middle is %+v", i, piece)
		}
		at += len(parts[i])
	}
}

func TestDontFragmentIsRespected(t *testing.T) {
	h := testHeader()
	h.DontFragment = true
	if _, err := Fragment(&h, bytesOf(1480), 1500); err != nil {
		t.Errorf("a packet that fits: %v", err)
	}
	if _, err := Fragment(&h, bytesOf(1481), 1500); !errors.Is(err, ErrDontFragment) {
		t.Errorf("a packet that does not fit: %v", err)
	}
}

func TestMTUTooSmall(t *testing.T) {
	h := testHeader()
	if _, err := Fragment(&h, bytesOf(100), 27); !errors.Is(err, ErrMTU) {
		t.Errorf("MTU of 27: %v", err)
	}
}

func TestFragmentDoesNotAllocate(t *testing.T) {
	h := testHeader()
	h.Options = []byte{uint8(wire.OptRouterAlert), 4, 0, 0}
	payload := bytesOf(9000)
	sum := 0
	if n := testing.AllocsPerRun(100, func() {
		f, _ := Fragment(&h, payload, 1500)
		for h, part, ok := f.Next(); ok; h, part, ok = f.Next() {
			sum += len(part) + h.Len()
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
