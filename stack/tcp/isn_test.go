package tcp

import (
	"net/netip"
	"testing"
	"time"
)

func TestSipHash(t *testing.T) {
	// The key 00 01 ... 0f, and inputs 00 01 ... of these lengths. The values
	// are those published with the algorithm.
	const k0, k1 = 0x0706050403020100, 0x0f0e0d0c0b0a0908
	in := make([]byte, 16)
	for i := range in {
		in[i] = byte(i)
	}
	for n, want := range map[int]uint64{
		0:  0x726fdb47dd0e0e31,
		1:  0x74f839c593dc67fd,
		2:  0x0d6c8009d9a94f5a,
		3:  0x85676696d7fb7e2d,
		15: 0xa129ca6149be45e5,
	} {
		if got := sipHash(k0, k1, in[:n]); got != want {
			t.Errorf("hash of %d bytes is %#x, want %#x", n, got, want)
		}
	}
}

var testKey = NewKey([16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})

func TestISN(t *testing.T) {
	a := testKey.ISN(0, testID)
	if got := testKey.ISN(4*time.Millisecond, testID) - a; got != 1000 {
		t.Errorf("advances by %d in 4 ms, want 1000 (RFC 6528)", got)
	}
	other := testID
	other.Remote = netip.AddrPortFrom(other.Remote.Addr(), other.Remote.Port()+1)
	key := NewKey([16]byte{2})
	seen := map[uint32]bool{
		a: true, testKey.ISN(0, other): true, key.ISN(0, testID): true,
		testKey.TimestampOffset(testID): true, testKey.TimestampOffset(other): true, key.TimestampOffset(testID): true,
	}
	if len(seen) != 6 {
		t.Error("numbers for different IDs, keys or purposes are the same")
	}
}
