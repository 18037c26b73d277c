package mem

// Supply is the result of a request to an object for a page.
type Supply uint8

// Values of Supply: results of Object.Page.
const (
	Supplied  Supply = iota // the page is present
	Loading                 // the page has to be loaded: the caller releases its locks, calls Load, and asks again
	Beyond                  // the object ends before the page: SIGBUS
	Exhausted               // no page is free
)

// Object supplies pages by index. Its methods are safe for concurrent use. The caller holds a Map's lock unless the
// method's comment says otherwise. Regions of several maps may use the same Object.
type Object interface {
	// Page returns a page that the caller will map. store requests it for a store to a shared mapping: the page is then
	// marked dirty, and writable is true. Otherwise, writable reports whether later stores need no further call of
	// Page. The page stays valid until the object has called Map.Revoke for it.
	Page(index uint64, store bool) (p Page, writable bool, s Supply)
	// Peek returns a page for reading if it is present, and 0 otherwise.
	Peek(index uint64) Page
	// Load makes a page present. It may block, and is called without locks. An error leads to SIGBUS.
	Load(index uint64) error
	// Attach records that m has one more region that uses the object; Detach records that it has one fewer. A map with
	// two such regions is attached twice. The last Detach may free the object.
	Attach(m *Map)
	Detach(m *Map)
	// Sync writes the dirty pages whose indices are in [from, to) back, and waits until they are written. It
	// is called without locks.
	Sync(from, to uint64) error
	// Punch replaces the pages whose indices are in [from, to) by zeros (MADV_REMOVE). It is called
	// without locks.
	Punch(from, to uint64) error
	// Label describes the object in /proc/PID/maps.
	Label() Label
}

// Label describes a region's object in /proc/PID/maps.
type Label struct {
	Path         string // path of the file, or a name such as "[vdso]"
	Major, Minor uint32
	Inode        uint64
	Memory       bool // the object is in memory and has no storage, like a file of tmpfs
}
