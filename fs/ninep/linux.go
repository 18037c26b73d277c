package ninep

// The requests that 9P2000.L adds for Linux.

// Statfs is the reply to Statfs (statfs(2)).
type Statfs struct {
	Type, BlockSize              uint32
	Blocks, BlocksFree, BlocksOK uint64
	Files, FilesFree, FSID       uint64
	NameLength                   uint32
}

func (m *Statfs) fields(c *Coder) {
	c.u32(&m.Type)
	c.u32(&m.BlockSize)
	for _, v := range [...]*uint64{&m.Blocks, &m.BlocksFree, &m.BlocksOK, &m.Files, &m.FilesFree, &m.FSID} {
		c.u64(v)
	}
	c.u32(&m.NameLength)
}

// Open opens FID (Tlopen). Flags are those of open(2) on x86-64. The reply is an Opened.
type Open struct{ FID, Flags uint32 }

func (m *Open) fields(c *Coder) { c.u32(&m.FID); c.u32(&m.Flags) }

// Opened is the reply to Open and Create. Unit is the largest number of bytes of one read or write; 0: the size of
// messages is the only limit.
type Opened struct {
	QID  QID
	Unit uint32
}

func (m *Opened) fields(c *Coder) { c.qid(&m.QID); c.u32(&m.Unit) }

// Create creates and opens a file in the directory FID, which becomes that file (Tlcreate). The reply is an Opened.
type Create struct {
	FID              uint32
	Name             string
	Flags, Mode, GID uint32
}

func (m *Create) fields(c *Coder) {
	c.u32(&m.FID)
	c.text(&m.Name)
	c.u32(&m.Flags)
	c.u32(&m.Mode)
	c.u32(&m.GID)
}

// Symlink creates a symbolic link. The reply is an OneQID.
type Symlink struct {
	FID          uint32
	Name, Target string
	GID          uint32
}

func (m *Symlink) fields(c *Coder) {
	c.u32(&m.FID)
	c.text(&m.Name)
	c.text(&m.Target)
	c.u32(&m.GID)
}

// Mknod creates a file of any type but Dir and Symlink. The reply is an OneQID.
type Mknod struct {
	FID                     uint32
	Name                    string
	Mode, Major, Minor, GID uint32
}

func (m *Mknod) fields(c *Coder) {
	c.u32(&m.FID)
	c.text(&m.Name)
	for _, v := range [...]*uint32{&m.Mode, &m.Major, &m.Minor, &m.GID} {
		c.u32(v)
	}
}

// Rename moves FID into the directory Dir. The reply is Empty.
type Rename struct {
	FID, Dir uint32
	Name     string
}

func (m *Rename) fields(c *Coder) { c.u32(&m.FID); c.u32(&m.Dir); c.text(&m.Name) }

// Target is the reply to Readlink.
type Target struct{ Target string }

func (m *Target) fields(c *Coder) { c.text(&m.Target) }

// Getattr returns attributes. The reply is an Attr.
type Getattr struct {
	FID  uint32
	Mask uint64
}

func (m *Getattr) fields(c *Coder) { c.u32(&m.FID); c.u64(&m.Mask) }

// AttrBasic is the mask of the attributes of stat(2).
const AttrBasic = 0x7ff

// Time is a time since 1970.
type Time struct{ Sec, Nsec uint64 }

// Attr is the reply to Getattr.
type Attr struct {
	Valid                         uint64
	QID                           QID
	Mode, UID, GID                uint32
	Links, Device                 uint64 // Device is st_rdev, encoded as fs.Device
	Size, BlockSize, Blocks       uint64
	Access, Modify, Status, Birth Time
	Generation, DataVersion       uint64
}

func (m *Attr) fields(c *Coder) {
	c.u64(&m.Valid)
	c.qid(&m.QID)
	c.u32(&m.Mode)
	c.u32(&m.UID)
	c.u32(&m.GID)
	c.u64(&m.Links)
	c.u64(&m.Device)
	c.u64(&m.Size)
	c.u64(&m.BlockSize)
	c.u64(&m.Blocks)
	c.time(&m.Access)
	c.time(&m.Modify)
	c.time(&m.Status)
	c.time(&m.Birth)
	c.u64(&m.Generation)
	c.u64(&m.DataVersion)
}

// Fields that Setattr sets.
const (
	SetMode uint32 = 1 << iota
	SetUID
	SetGID
	SetSize
	SetAccess
	SetModify
	SetStatus
	SetAccessTo // together with SetAccess: set the time to ATime; without SetAccess: set it to the present time
	SetModifyTo
)

// Setattr changes attributes. The reply is Empty.
type Setattr struct {
	FID, Valid, Mode, UID, GID uint32
	Size                       uint64
	Access, Modify             Time
}

func (m *Setattr) fields(c *Coder) {
	for _, v := range [...]*uint32{&m.FID, &m.Valid, &m.Mode, &m.UID, &m.GID} {
		c.u32(v)
	}
	for _, v := range [...]*uint64{&m.Size, &m.Access.Sec, &m.Access.Nsec, &m.Modify.Sec, &m.Modify.Nsec} {
		c.u64(v)
	}
}

// XattrWalk makes New a FID from which Read reads the value of an extended attribute of the file FID. With an empty
// name, New is the list of the attributes' names, each followed by a zero byte. The reply is a Size.
type XattrWalk struct {
	FID, New uint32
	Name     string
}

func (m *XattrWalk) fields(c *Coder) { c.u32(&m.FID); c.u32(&m.New); c.text(&m.Name) }

// Size is the reply to XattrWalk, in bytes.
type Size struct{ Size uint64 }

func (m *Size) fields(c *Coder) { c.u64(&m.Size) }

// XattrCreate makes FID an extended attribute. Size bytes of its value are then written to FID, and Clunk sets the
// attribute. With a size of 0 and XattrReplace the attribute is removed. Flags are those of setxattr(2). The reply is
// Empty.
type XattrCreate struct {
	FID   uint32
	Name  string
	Size  uint64
	Flags uint32
}

func (m *XattrCreate) fields(c *Coder) {
	c.u32(&m.FID)
	c.text(&m.Name)
	c.u64(&m.Size)
	c.u32(&m.Flags)
}

// Dirent is an entry in the data of a reply to Readdir.
type Dirent struct {
	QID    QID
	Offset uint64 // offset of the next entry
	Type   uint8  // type of the file, as in getdents64(2)
	Name   string
}

func (m *Dirent) fields(c *Coder) { c.qid(&m.QID); c.u64(&m.Offset); c.u8(&m.Type); c.text(&m.Name) }

// AppendTo appends the entry to the data of a reply.
func (m *Dirent) AppendTo(b []byte) []byte {
	c := Coder{b: b}
	m.fields(&c)
	return c.b
}

// Next decodes the first entry of data, and returns the rest. Errors: ErrMessage.
func (m *Dirent) Next(data []byte) (rest []byte, err error) {
	c := Coder{b: data, decoding: true}
	if m.fields(&c); c.bad {
		return nil, ErrMessage
	}
	return c.b, nil
}

// Fsync is the request of fsync(2), or of fdatasync(2) if DataOnly is 1. The reply is Empty.
type Fsync struct{ FID, DataOnly uint32 }

func (m *Fsync) fields(c *Coder) {
	c.u32(&m.FID)
	if c.decoding && len(c.b) == 0 {
		return // the last field is optional, since older clients do not send it
	}
	c.u32(&m.DataOnly)
}

// Types of locks and results of Lock.
const (
	LockRead   uint8 = 0
	LockWrite  uint8 = 1
	LockUnlock uint8 = 2

	LockBlock uint32 = 1 // flag: wait until the lock is free

	LockSuccess uint8 = 0
	LockBlocked uint8 = 1
	LockError   uint8 = 2
)

// Lock acquires or releases a lock on a range of bytes; a length of 0 is up to the end. The reply is a Status.
type Lock struct {
	FID           uint32
	Kind          uint8
	Flags         uint32
	Start, Length uint64
	Process       uint32
	Client        string
}

func (m *Lock) fields(c *Coder) {
	c.u32(&m.FID)
	c.u8(&m.Kind)
	c.u32(&m.Flags)
	c.u64(&m.Start)
	c.u64(&m.Length)
	c.u32(&m.Process)
	c.text(&m.Client)
}

// Status is the reply to Lock.
type Status struct{ Status uint8 }

func (m *Status) fields(c *Coder) { c.u8(&m.Status) }

// Range is a lock in GetLock and its reply.
type Range struct {
	Kind          uint8
	Start, Length uint64
	Process       uint32
	Client        string
}

func (m *Range) fields(c *Coder) {
	c.u8(&m.Kind)
	c.u64(&m.Start)
	c.u64(&m.Length)
	c.u32(&m.Process)
	c.text(&m.Client)
}

// GetLock returns a lock that conflicts with the lock in the request. The reply is a Range, of Kind LockUnlock if
// there is none.
type GetLock struct {
	FID uint32
	Range
}

func (m *GetLock) fields(c *Coder) { c.u32(&m.FID); m.Range.fields(c) }

// Link adds a name to FID. The reply is Empty.
type Link struct {
	Dir, FID uint32
	Name     string
}

func (m *Link) fields(c *Coder) { c.u32(&m.Dir); c.u32(&m.FID); c.text(&m.Name) }

// Mkdir creates a directory. The reply is an OneQID.
type Mkdir struct {
	FID       uint32
	Name      string
	Mode, GID uint32
}

func (m *Mkdir) fields(c *Coder) { c.u32(&m.FID); c.text(&m.Name); c.u32(&m.Mode); c.u32(&m.GID) }

// RenameAt moves a name. The reply is Empty.
type RenameAt struct {
	Dir     uint32
	Name    string
	NewDir  uint32
	NewName string
}

func (m *RenameAt) fields(c *Coder) {
	c.u32(&m.Dir)
	c.text(&m.Name)
	c.u32(&m.NewDir)
	c.text(&m.NewName)
}

// UnlinkAt removes a name; with Flags AT_REMOVEDIR the name of a directory. The reply is Empty.
type UnlinkAt struct {
	Dir   uint32
	Name  string
	Flags uint32
}

func (m *UnlinkAt) fields(c *Coder) { c.u32(&m.Dir); c.text(&m.Name); c.u32(&m.Flags) }
