package stack_test

import (
	"net"
	"os"
	"testing"
)

// Package net makes what bounds its threads, and what guards the resolver's configuration, when
// something is first looked up. In a bubble of synctest these would be the bubble's, and no other
// test could look anything up (go test -count=2).
func TestMain(m *testing.M) {
	net.LookupPort("tcp", "no such port")
	net.LookupHost("localhost")
	os.Exit(m.Run())
}
