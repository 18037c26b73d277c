package virtio

// Features is a set of features that a device offers or a driver accepts (virtio 1.2 section 2.2). Bits 0 to 23 and 50
// to 63 depend on the type of device.
type Features uint64

// Features of all types of device (virtio 1.2 section 6).
const (
	Indirect       Features = 1 << 28 // VIRTIO_F_INDIRECT_DESC
	EventIndex     Features = 1 << 29 // VIRTIO_F_EVENT_IDX
	Version1       Features = 1 << 32 // VIRTIO_F_VERSION_1
	AccessPlatform Features = 1 << 33 // VIRTIO_F_ACCESS_PLATFORM
)

// Has reports whether the set contains all features in want.
func (f Features) Has(want Features) bool { return f&want == want }

// Kind is the type of a virtio device, with the numbers of virtio 1.2 section 5.
type Kind uint16

// Types of device that Loam has drivers for.
const (
	Net     Kind = 1
	Block   Kind = 2
	Console Kind = 3
	Entropy Kind = 4
)

// String returns the name that QEMU uses for the type of device.
func (k Kind) String() string {
	switch k {
	case Net:
		return "net"
	case Block:
		return "blk"
	case Console:
		return "console"
	case Entropy:
		return "rng"
	}
	return "of a kind without a driver"
}
