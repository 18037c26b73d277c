package linux

// Requests of ioctl(2) about block devices.
//
// headers: linux/fs.h
const (
	BLKROGET     = 0x125e
	BLKGETSIZE   = 0x1260
	BLKSSZGET    = 0x1268
	BLKPBSZGET   = 0x127b
	BLKBSZGET    = 0x80081270
	BLKGETSIZE64 = 0x80081272
)

// EXT4_IOC_RESIZE_FS is the request of ioctl(2) that enlarges an ext4 file system (linux/ext4.h).
const EXT4_IOC_RESIZE_FS = 0x40086610

// RNDGETENTCNT is the request of ioctl(2) for the entropy of a random device in bits (random(4)).
//
// headers: linux/random.h
const (
	RNDGETENTCNT = 0x80045200
)

// FICLONE and FICLONERANGE are the requests of ioctl(2) that make two files share content (linux/fs.h).
const (
	FICLONE      = 0x40049409
	FICLONERANGE = 0x4020940d
)
