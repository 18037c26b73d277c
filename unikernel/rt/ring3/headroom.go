package ring3

// headroom is memory that is never accessed, so it has no physical pages. The collector counts it as live memory. The kernel's
// live heap is often a few MiB, and the collector runs when the heap has doubled: without headroom, programs that open files or
// start processes would make it run many times in a second.
var headroom []byte

// Size of headroom: a share of the memory of the machine, as a divisor, and the maximum in bytes. Garbage takes as much memory
// more. A part of it may come from the reserve of the kernel (kernel/user.go). On a machine with less than leastMemory bytes the
// reserve is small, and there is no headroom.
const (
	headroomShare = 64
	mostHeadroom  = 16 << 20
	leastMemory   = 240 << 20 // a machine of 256 MiB has a little less memory for its programs
)

// headroomFor returns the size of headroom for a machine with total bytes of memory.
func headroomFor(total int64) int64 {
	if total < leastMemory {
		return 0
	}
	return min(total/headroomShare, mostHeadroom)
}

// addHeadroom allocates headroom for a machine with total bytes of memory.
func addHeadroom(total int64) { headroom = make([]byte, headroomFor(total)) }
