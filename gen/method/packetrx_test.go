//go:build linux

package method

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// A received frame has two times of arrival, the kernel's and the device's. The receiver returns each in its own
// field.
func TestTimesOfAFrame(t *testing.T) {
	message := func(kind uint32, seconds ...uint64) []byte {
		b := make([]byte, cmsgHeader+len(seconds)*timespec)
		n := binary.NativeEndian
		n.PutUint64(b, uint64(len(b)))
		n.PutUint32(b[8:], unix.SOL_SOCKET)
		n.PutUint32(b[12:], kind)
		for i, s := range seconds {
			n.PutUint64(b[cmsgHeader+i*timespec:], s)
			n.PutUint64(b[cmsgHeader+i*timespec+8:], uint64(i+1))
		}
		return b
	}
	control := append(message(unix.SCM_TIMESTAMPNS, 10), message(unix.SCM_TIMESTAMPING, 0, 0, 20)...)
	if _, at, device := untag(make([]byte, 100), control); at != 10_000_000_001 || device != 20_000_000_003 {
		t.Errorf("%d and %d", at, device)
	}
	if _, at, device := untag(make([]byte, 100), control[:cmsgHeader+timespec+20]); at != 10_000_000_001 || device != 0 {
		t.Errorf("of what is cut off: %d and %d", at, device)
	}
}
