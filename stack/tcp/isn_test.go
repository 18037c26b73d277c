package tcp

import (
	"net/netip"
	"testing"
	"time"
)

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
