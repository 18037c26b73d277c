package ring3

// headroom is memory that is never accessed, so it has no physical pages. The collector counts it as live memory. The kernel's
// live heap is often a few MiB, and the collector runs when the heap has doubled: without headroom, programs that open files or
// start processes would make it run many times in a second.
var headroom []byte

// Size of headroom: a share of the memory of the machine, as a divisor, and the maximum in bytes. Garbage takes as much memory
// more.
const (
	headroomShare = 64
	mostHeadroom  = 16 << 20
)

// addHeadroom allocates headroom for a machine with total bytes of memory.
func addHeadroom(total int64) { headroom = make([]byte, min(total/headroomShare, mostHeadroom)) }
