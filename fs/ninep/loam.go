package ninep

// The requests that Loam adds (VersionLoam). Each replaces two to four messages of 9P2000.L, or does
// something that 9P2000.L cannot do.

// Lookup returns the attributes of a name in a directory, without a FID for it; with an empty name, it returns
// the attributes of FID. The reply is an Attr.
type Lookup struct {
	FID  uint32
	Name string
}

func (m *Lookup) fields(c *Coder) { c.u32(&m.FID); c.text(&m.Name) }

// List returns entries of a directory, from an offset on, with their attributes. The directory is FID, which need not
// be open, or the subdirectory Name of FID if Name is not empty. The reply is a Listed of at most Count bytes.
type List struct {
	FID    uint32
	Name   string
	Offset uint64
	Count  uint32
}

func (m *List) fields(c *Coder) { c.u32(&m.FID); c.text(&m.Name); c.u64(&m.Offset); c.u32(&m.Count) }

// Listed is the reply to List. QID identifies the directory. Entries holds Entry values, one after another. End
// reports that there are no more.
type Listed struct {
	QID     QID
	End     uint8
	Entries []byte
}

func (m *Listed) fields(c *Coder) { c.qid(&m.QID); c.u8(&m.End); c.data(&m.Entries) }

// Entry is an entry of a Listed.
type Entry struct {
	Offset uint64 // offset of the next entry
	Name   string
	Attr   Attr
}

func (m *Entry) fields(c *Coder) { c.u64(&m.Offset); c.text(&m.Name); m.Attr.fields(c) }

// AppendTo appends the entry to the data of a reply, and Next decodes one: see Dirent.
func (m *Entry) AppendTo(b []byte) []byte {
	c := Coder{b: b}
	m.fields(&c)
	return c.b
}

// Next decodes the first entry of data, and returns the rest. Errors: ErrMessage.
func (m *Entry) Next(data []byte) (rest []byte, err error) {
	c := Coder{b: data, decoding: true}
	if m.fields(&c); c.bad {
		return nil, ErrMessage
	}
	return c.b, nil
}

// MaxFetch is the maximum number of names of a Fetch.
const MaxFetch = 256

// Fetch returns the content of regular files in a directory, each of at most Most bytes. The reply has at most Count
// bytes. The reply is a Data of Content values, for as many names as there was room for.
type Fetch struct {
	FID         uint32
	Most, Count uint32
	Names       []string
}

func (m *Fetch) fields(c *Coder) {
	c.u32(&m.FID)
	c.u32(&m.Most)
	c.u32(&m.Count)
	c.texts(&m.Names, MaxFetch)
}

// Content is a file in the reply to Fetch. Errno is not 0 for a file that cannot be read, is not a regular file, or
// is larger than allowed (EFBIG).
type Content struct {
	Errno uint32
	Attr  Attr
	Data  []byte
}

func (m *Content) fields(c *Coder) {
	c.u32(&m.Errno)
	if m.Errno == 0 {
		m.Attr.fields(c)
		c.data(&m.Data)
	}
}

// AppendTo appends the file to the data of a reply.
func (m *Content) AppendTo(b []byte) []byte {
	c := Coder{b: b}
	m.fields(&c)
	return c.b
}

// Next decodes the first file of data, and returns the rest. Errors: ErrMessage.
func (m *Content) Next(data []byte) (rest []byte, err error) {
	c := Coder{b: data, decoding: true}
	if m.fields(&c); c.bad {
		return nil, ErrMessage
	}
	return c.b, nil
}

// OpenAt opens the file of a name in the directory FID as New; with O_CREAT it creates the file, and with an empty
// name it opens FID itself. Mode, UID and GID apply to a new file. Count bytes of its content are returned, if
// it is regular and opened for reading. The reply is an OpenedAt.
type OpenAt struct {
	FID, New              uint32
	Name                  string
	Flags, Mode, UID, GID uint32
	Count                 uint32
}

func (m *OpenAt) fields(c *Coder) {
	c.u32(&m.FID)
	c.u32(&m.New)
	c.text(&m.Name)
	for _, v := range [...]*uint32{&m.Flags, &m.Mode, &m.UID, &m.GID, &m.Count} {
		c.u32(v)
	}
}

// OpenedAt is the reply to OpenAt.
type OpenedAt struct {
	Attr Attr
	Data []byte
}

func (m *OpenedAt) fields(c *Coder) { m.Attr.fields(c); c.data(&m.Data) }

// AppendData writes at the end of an open file. The reply is an Appended.
type AppendData struct {
	FID  uint32
	Data []byte
}

func (m *AppendData) fields(c *Coder) { c.u32(&m.FID); c.data(&m.Data) }

// Appended is the reply to AppendData: the bytes that were written, and the offset of the end.
type Appended struct {
	Count uint32
	End   uint64
}

func (m *Appended) fields(c *Coder) { c.u32(&m.Count); c.u64(&m.End) }

// Move moves a name like RenameAt, with the flags of renameat2(2). The reply is Empty.
type Move struct {
	RenameAt
	Flags uint32
}

func (m *Move) fields(c *Coder) { m.RenameAt.fields(c); c.u32(&m.Flags) }

// Allocate calls fallocate(2) on an open file. The reply is Empty.
type Allocate struct {
	FID, Mode      uint32
	Offset, Length uint64
}

func (m *Allocate) fields(c *Coder) {
	c.u32(&m.FID)
	c.u32(&m.Mode)
	c.u64(&m.Offset)
	c.u64(&m.Length)
}

// Seek returns the next data (SEEK_DATA) or hole (SEEK_HOLE) of an open file. The reply is a Size.
type Seek struct {
	FID    uint32
	Offset uint64
	Whence uint32
}

func (m *Seek) fields(c *Coder) { c.u32(&m.FID); c.u64(&m.Offset); c.u32(&m.Whence) }

// Temp opens a new file without a name in the file system of the directory FID, as New (O_TMPFILE). The reply is an
// OpenedAt without data.
type Temp struct{ FID, New, Flags, Mode, UID, GID uint32 }

func (m *Temp) fields(c *Coder) {
	for _, v := range [...]*uint32{&m.FID, &m.New, &m.Flags, &m.Mode, &m.UID, &m.GID} {
		c.u32(v)
	}
}
