package linux

// Flags of mount(2) and umount2(2).
//
// headers: sys/mount.h
const (
	MNT_DETACH      = 2
	MNT_EXPIRE      = 4
	MNT_FORCE       = 1
	MS_BIND         = 0x1000
	MS_MGC_MSK      = 0xffff0000
	MS_MGC_VAL      = 0xc0ed0000
	MS_MOVE         = 0x2000
	MS_NODEV        = 4
	MS_NOEXEC       = 8
	MS_NOSUID       = 2
	MS_PRIVATE      = 0x40000
	MS_RDONLY       = 1
	MS_REC          = 0x4000
	MS_REMOUNT      = 0x20
	MS_SHARED       = 0x100000
	MS_SLAVE        = 0x80000
	MS_UNBINDABLE   = 0x20000
	UMOUNT_NOFOLLOW = 8
)
