package stack_test

import (
	"net"
	"os"
	"testing"
)

// Package net creates its thread limit and the lock of its resolver configuration at the
// first lookup. Inside a synctest bubble they would belong to that bubble, and no other
// test could look up names (go test -count=2). So the first lookup happens here.
func TestMain(m *testing.M) {
	net.LookupPort("tcp", "no such port")
	net.LookupHost("localhost")
	os.Exit(m.Run())
}
