package mem

// Supply is the answer of an object that was asked for a page.
type Supply uint8

// Answers.
const (
	Supplied  Supply = iota // the page is present
	Loading                 // the page has to be loaded: call Load without locks, then ask again
	Beyond                  // the object ends before the page: SIGBUS
	Exhausted               // no page is free
)

// Object supplies pages by index. Its methods are safe for concurrent use, and
// are called with a Map's lock held unless noted. Regions of many maps may share one.
type Object interface {
	// Page returns a page to be mapped. For a store into a shared mapping it marks the page dirty and
	// allows writing; for other accesses writable is whether stores need no further notice.
	// The page stays valid until the object has called Map.Revoke for it.
	Page(index uint64, store bool) (p Page, writable bool, s Supply)
	// Peek returns a page that is present, for reading, or 0.
	Peek(index uint64) Page
	// Load makes a page present, and may block: it is called without locks. An error
	// becomes SIGBUS.
	Load(index uint64) error
	// Attach records a region of m over the object; Detach ends it. A map that has two regions
	// is attached twice. The last Detach may free the object.
	Attach(m *Map)
	Detach(m *Map)
	// Sync writes dirty pages from index from to to back and waits; called without locks.
	Sync(from, to uint64) error
	// Punch replaces pages by zeros (MADV_REMOVE); called without locks.
	Punch(from, to uint64) error
	// Label describes the object in /proc/PID/maps.
	Label() Label
}

// Label describes a region's object in /proc/PID/maps.
type Label struct {
	Path         string // path of the file, or a name such as "[vdso]"
	Major, Minor uint32
	Inode        uint64
}
