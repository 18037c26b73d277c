package linux

// PROCMAP_QUERY is the request of ioctl(2) for /proc/PID/maps: include/uapi/linux/fs.h.
const PROCMAP_QUERY = 0xc0686611

// Flags of PROCMAP_QUERY. The first four are also the flags of a result.
const (
	PROCMAP_QUERY_VMA_READABLE         = 0x01
	PROCMAP_QUERY_VMA_WRITABLE         = 0x02
	PROCMAP_QUERY_VMA_EXECUTABLE       = 0x04
	PROCMAP_QUERY_VMA_SHARED           = 0x08
	PROCMAP_QUERY_COVERING_OR_NEXT_VMA = 0x10
	PROCMAP_QUERY_FILE_BACKED_VMA      = 0x20
)

// ProcmapQuery is struct procmap_query. The name and the build ID are at the addresses NameAddr and BuildIDAddr.
type ProcmapQuery struct {
	Size, QueryFlags, QueryAddr uint64
	Start, End                  uint64
	Flags, PageSize, Offset     uint64
	Inode                       uint64
	Major, Minor                uint32
	NameSize, BuildIDSize       uint32
	NameAddr, BuildIDAddr       uint64
}

// SizeofProcmapQuery is the size of a struct procmap_query in bytes; the first SizeofProcmapInput bytes are required.
const (
	SizeofProcmapQuery = 104
	SizeofProcmapInput = 24
)

// ParseProcmapQuery decodes a struct procmap_query.
func ParseProcmapQuery(b []byte) ProcmapQuery {
	return ProcmapQuery{
		Size: le.Uint64(b), QueryFlags: le.Uint64(b[8:]), QueryAddr: le.Uint64(b[16:]), Start: le.Uint64(b[24:]), End: le.Uint64(b[32:]),
		Flags: le.Uint64(b[40:]), PageSize: le.Uint64(b[48:]), Offset: le.Uint64(b[56:]), Inode: le.Uint64(b[64:]),
		Major: le.Uint32(b[72:]), Minor: le.Uint32(b[76:]), NameSize: le.Uint32(b[80:]), BuildIDSize: le.Uint32(b[84:]),
		NameAddr: le.Uint64(b[88:]), BuildIDAddr: le.Uint64(b[96:]),
	}
}

// Put encodes q into the first SizeofProcmapQuery bytes of b.
func (q *ProcmapQuery) Put(b []byte) {
	for i, v := range [...]uint64{q.Size, q.QueryFlags, q.QueryAddr, q.Start, q.End, q.Flags, q.PageSize, q.Offset, q.Inode} {
		le.PutUint64(b[8*i:], v)
	}
	for i, v := range [...]uint32{q.Major, q.Minor, q.NameSize, q.BuildIDSize} {
		le.PutUint32(b[72+4*i:], v)
	}
	le.PutUint64(b[88:], q.NameAddr)
	le.PutUint64(b[96:], q.BuildIDAddr)
}
