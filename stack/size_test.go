package stack

import (
	"reflect"
	"testing"
)

// The runtime allocates a TCPConn with a header of 8 bytes. Its next size class after 1,024 bytes is 1,152, which costs
// 128 bytes for each connection, and a tenth of the CPU time to open and close one.
func TestSizeOfConnection(t *testing.T) {
	if n := reflect.TypeFor[TCPConn]().Size() + 8; n > 1024 {
		t.Errorf("a TCPConn takes %d bytes of the heap, want at most 1024", n)
	}
}
