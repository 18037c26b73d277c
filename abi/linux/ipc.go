package linux

// Flags and operations of System V's IPC (sysvipc(7)).
//
// headers: stddef.h linux/ipc.h linux/shm.h linux/sem.h linux/msg.h
const (
	IPC_PRIVATE = 0
	IPC_CREAT   = 0x200
	IPC_EXCL    = 0x400
	IPC_NOWAIT  = 0x800
	IPC_RMID    = 0
	IPC_SET     = 1
	IPC_STAT    = 2
	IPC_INFO    = 3

	SHM_RDONLY   = 0x1000
	SHM_RND      = 0x2000
	SHM_REMAP    = 0x4000
	SHM_EXEC     = 0x8000
	SHM_LOCK     = 11
	SHM_UNLOCK   = 12
	SHM_STAT     = 13
	SHM_INFO     = 14
	SHM_STAT_ANY = 15
	SHM_HUGETLB  = 0x800

	SEM_UNDO     = 0x1000
	GETPID       = 11
	GETVAL       = 12
	GETALL       = 13
	GETNCNT      = 14
	GETZCNT      = 15
	SETVAL       = 16
	SETALL       = 17
	SEM_STAT     = 18
	SEM_INFO     = 19
	SEM_STAT_ANY = 20

	MSG_NOERROR  = 0x1000
	MSG_EXCEPT   = 0x2000
	MSG_COPY     = 0x4000
	MSG_STAT     = 11
	MSG_INFO     = 12
	MSG_STAT_ANY = 13
)
