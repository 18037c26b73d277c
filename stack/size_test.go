package stack

import (
	"reflect"
	"testing"
)

// A TCPConn fits the Go runtime's size class of 1,024 bytes, including the header of 8 bytes that the runtime adds. In the
// next class, 1,152 bytes, each connection would take 128 bytes more, and a tenth more CPU time to open and close.
func TestSizeOfConnection(t *testing.T) {
	if n := reflect.TypeFor[TCPConn]().Size() + 8; n > 1024 {
		t.Errorf("a TCPConn takes %d bytes of the heap, want at most 1024", n)
	}
}
