package netdevice

import (
	"bytes"

	"loam/abi/linux"
	"loam/link"
	"loam/stack"
)

// All returns the interfaces of a stack. net may be nil.
func All(net *stack.Stack) []*stack.Interface {
	if net == nil {
		return nil
	}
	return net.Interfaces()
}

// Named returns the interface with a name, or nil. net may be nil.
func Named(net *stack.Stack, name string) *stack.Interface {
	if net == nil {
		return nil
	}
	for _, i := range net.Interfaces() {
		if i.Name() == name {
			return i
		}
	}
	return nil
}

// ByIndex returns the interface with an index, or nil. net must not be nil.
func ByIndex(net *stack.Stack, index int) *stack.Interface {
	for _, i := range net.Interfaces() {
		if i.Index() == index {
			return i
		}
	}
	return nil
}

// Index returns the index of the interface with a name, or 0.
func Index(net *stack.Stack, name string) int {
	if i := Named(net, name); i != nil {
		return i.Index()
	}
	return 0
}

// Kind returns the hardware type ARPHRD_* and the flags IFF_* of an interface.
func Kind(i *stack.Interface) (kind uint16, flags uint32) {
	const up = linux.IFF_UP | linux.IFF_RUNNING | linux.IFF_LOWER_UP
	switch {
	case i.IsLoopback():
		return linux.ARPHRD_LOOPBACK, up | linux.IFF_LOOPBACK
	case i.Device().Info().Medium == link.IP:
		return linux.ARPHRD_NONE, up | linux.IFF_POINTOPOINT | linux.IFF_MULTICAST
	}
	return linux.ARPHRD_ETHER, up | linux.IFF_BROADCAST | linux.IFF_MULTICAST
}

// FromOption returns the interface whose name is the value of an option (SO_BINDTODEVICE), or nil for an empty name. Errors:
// ENODEV.
func FromOption(net *stack.Stack, value []byte) (*stack.Interface, linux.Errno) {
	name, _, _ := bytes.Cut(value, []byte{0})
	if len(name) == 0 {
		return nil, 0
	}
	if i := Named(net, string(name)); i != nil {
		return i, 0
	}
	return nil, linux.ENODEV
}

// OptionValue returns the name of an interface with a terminating NUL, or nil if the
// interface is nil.
func OptionValue(on *stack.Interface) []byte {
	if on == nil {
		return nil
	}
	return append([]byte(on.Name()), 0)
}
