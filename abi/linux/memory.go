package linux

// Flags of calls about memory.
//
// headers: sys/mman.h linux/membarrier.h
const (
	MADV_DONTNEED = 4
	MADV_FREE     = 8
	MADV_HWPOISON = 100

	MAP_ANON            = 0x20
	MAP_ANONYMOUS       = 0x20
	MAP_FIXED           = 0x10
	MAP_FIXED_NOREPLACE = 0x100000
	MAP_NORESERVE       = 0x4000
	MAP_PRIVATE         = 2
	MAP_SHARED          = 1
	MAP_SHARED_VALIDATE = 3
	MREMAP_FIXED        = 2
	MREMAP_MAYMOVE      = 1

	MS_ASYNC      = 1
	MS_INVALIDATE = 2
	MS_SYNC       = 4

	MEMBARRIER_CMD_GLOBAL                               = 1
	MEMBARRIER_CMD_GLOBAL_EXPEDITED                     = 2
	MEMBARRIER_CMD_PRIVATE_EXPEDITED                    = 8
	MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE          = 32
	MEMBARRIER_CMD_QUERY                                = 0
	MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED            = 4
	MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED           = 16
	MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE = 64

	PROT_EXEC  = 4
	PROT_NONE  = 0
	PROT_READ  = 1
	PROT_WRITE = 2
)
