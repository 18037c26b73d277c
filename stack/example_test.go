package stack_test

import (
	"fmt"
	"io"
	"net/netip"

	"loam/link/pipe"
	"loam/stack"
)

// Two hosts in one process are joined by a pipe. If a device of link/tap replaces one end
// of the pipe, the other host is Linux.
func Example() {
	wireA, wireB := pipe.New(pipe.Config{})
	a, b := stack.New(stack.Config{}), stack.New(stack.Config{})
	defer a.Close()
	defer b.Close()
	a.Attach(wireA, stack.InterfaceConfig{Name: "eth0"})
	b.Attach(wireB, stack.InterfaceConfig{Name: "eth0"})
	a.AddAddress("eth0", netip.MustParsePrefix("10.0.0.1/24"))
	b.AddAddress("eth0", netip.MustParsePrefix("10.0.0.2/24"))

	l, _ := b.Listen("tcp", ":7")
	go func() {
		c, _ := l.Accept()
		io.Copy(c, c)
		c.Close()
	}()
	c, _ := a.Dial("tcp", "10.0.0.2:7")
	fmt.Fprint(c, "from one stack to another, and back")
	c.(*stack.TCPConn).CloseWrite()
	echo, _ := io.ReadAll(c)
	fmt.Printf("%s\n", echo)
	// Output: from one stack to another, and back
}
