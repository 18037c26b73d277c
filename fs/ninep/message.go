package ninep

import (
	"encoding/binary"
	"errors"
)

// Type is the type of a message. The type of a reply is the type of its request plus one.
type Type uint8

// Types of requests of 9P2000.L.
const (
	TypeError       Type = 7 // a reply: Error
	TypeStatfs      Type = 8
	TypeOpen        Type = 12
	TypeCreate      Type = 14
	TypeSymlink     Type = 16
	TypeMknod       Type = 18
	TypeRename      Type = 20
	TypeReadlink    Type = 22
	TypeGetattr     Type = 24
	TypeSetattr     Type = 26
	TypeXattrWalk   Type = 30
	TypeXattrCreate Type = 32
	TypeReaddir     Type = 40
	TypeFsync       Type = 50
	TypeLock        Type = 52
	TypeGetLock     Type = 54
	TypeLink        Type = 70
	TypeMkdir       Type = 72
	TypeRenameAt    Type = 74
	TypeUnlinkAt    Type = 76
	TypeVersion     Type = 100
	TypeAuth        Type = 102
	TypeAttach      Type = 104
	TypeFlush       Type = 108
	TypeWalk        Type = 110
	TypeRead        Type = 116
	TypeWrite       Type = 118
	TypeClunk       Type = 120
	TypeRemove      Type = 122
)

// Types of requests that Loam adds: see VersionLoam.
const (
	TypeLookup Type = 160 + 2*iota
	TypeList
	TypeFetch
	TypeOpenAt
	TypeAppend
	TypeMove
	TypeAllocate
	TypeSeek
	TypeTemp
)

// Reply returns the type of the reply to a request.
func (t Type) Reply() Type { return t + 1 }

// Sizes of messages in bytes.
const (
	HeaderSize = 7       // length of a header: size, type and tag
	MinSize    = 4096    // smallest msize (maximum size of messages) that is accepted
	MaxSize    = 1 << 20 // largest msize
	ReadRoom   = 11      // length of a reply with data, without the data
	WriteRoom  = 23      // length of a Write request, without the data
)

// Numbers that stand for the absence of a tag or FID.
const (
	NoTag uint16 = 0xffff     // tag of a Version request
	NoFID uint32 = 0xffffffff // in Attach: there is no authentication
)

// Versions of the protocol, as named in a Version request.
const (
	VersionLinux = "9P2000.L"
	VersionLoam  = "9P2000.L.Loam" // 9P2000.L with the requests from TypeLookup on
)

// ErrMessage is returned for a malformed message.
var ErrMessage = errors.New("ninep: the message is malformed")

// Message is the body of a message.
type Message interface{ fields(*Coder) }

// Append appends a message to b.
func Append(b []byte, t Type, tag uint16, m Message) []byte {
	start := len(b)
	c := coders.Get().(*Coder)
	*c = Coder{b: append(b, 0, 0, 0, 0, uint8(t), uint8(tag), uint8(tag>>8))}
	if m != nil {
		m.fields(c)
	}
	b = c.b
	c.free()
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// Header is the beginning of a message.
type Header struct {
	Size uint32 // size of the message, with the header
	Type Type
	Tag  uint16
}

// ParseHeader decodes a header of HeaderSize bytes.
func ParseHeader(b []byte) Header {
	return Header{binary.LittleEndian.Uint32(b), Type(b[4]), binary.LittleEndian.Uint16(b[5:])}
}

// Parse decodes the body of a message into m. Byte slices of m are parts of body. Errors: ErrMessage, also for
// bytes behind the last field.
func Parse(body []byte, m Message) error {
	c := coders.Get().(*Coder)
	*c = Coder{b: body, decoding: true}
	m.fields(c)
	bad := c.bad || len(c.b) > 0
	c.free()
	if bad {
		return ErrMessage
	}
	return nil
}

// QID identifies a file: two files of a server that exist at the same time have different QIDs. Version
// distinguishes files that have the same inode number one after the other.
type QID struct {
	Type    uint8
	Version uint32
	Path    uint64
}

// Types of a QID. Any other file has 0.
const (
	QIDDir     = 0x80
	QIDSymlink = 0x02
)

// Empty is a message without fields.
type Empty struct{}

func (Empty) fields(*Coder) {}

// Error is the reply to a request that has failed (Rlerror).
type Error struct{ Errno uint32 }

func (m *Error) fields(c *Coder) { c.u32(&m.Errno) }

// Version negotiates the maximum size of messages and the version, in both directions. The server first completes all
// earlier requests, and then frees all FIDs.
type Version struct {
	Size    uint32
	Version string
}

func (m *Version) fields(c *Coder) { c.u32(&m.Size); c.text(&m.Version) }

// Auth requests an authentication. Loam's server does not support it.
type Auth struct {
	FID        uint32
	User, Tree string
	UID        uint32
}

func (m *Auth) fields(c *Coder) { c.u32(&m.FID); c.text(&m.User); c.text(&m.Tree); c.u32(&m.UID) }

// Attach makes FID the root of a tree. The reply is an OneQID.
type Attach struct {
	FID, Auth  uint32
	User, Tree string
	UID        uint32
}

func (m *Attach) fields(c *Coder) {
	c.u32(&m.FID)
	c.u32(&m.Auth)
	c.text(&m.User)
	c.text(&m.Tree)
	c.u32(&m.UID)
}

// OneQID is the reply to Attach, Symlink, Mknod and Mkdir.
type OneQID struct{ QID QID }

func (m *OneQID) fields(c *Coder) { c.qid(&m.QID) }

// Flush cancels the request with a tag. If that request gets a reply, the reply to Flush follows it.
type Flush struct{ Tag uint16 }

func (m *Flush) fields(c *Coder) { c.u16(&m.Tag) }

// MaxWalk is the maximum number of names of a Walk.
const MaxWalk = 16

// Walk makes New the file that is reached from FID by names.
type Walk struct {
	FID, New uint32
	Names    []string
}

func (m *Walk) fields(c *Coder) { c.u32(&m.FID); c.u32(&m.New); c.texts(&m.Names, MaxWalk) }

// Walked is the reply to Walk. If it has fewer QIDs than there were names, the next name does not exist, and New
// is not in use.
type Walked struct{ QIDs []QID }

func (m *Walked) fields(c *Coder) {
	n := uint16(min(len(m.QIDs), MaxWalk))
	c.u16(&n)
	if c.decoding {
		if n > MaxWalk {
			c.bad = true
			return
		}
		m.QIDs = make([]QID, n)
	}
	for i := range n {
		c.qid(&m.QIDs[i])
	}
}

// OneFID is the request Clunk, Remove, Readlink or Statfs.
type OneFID struct{ FID uint32 }

func (m *OneFID) fields(c *Coder) { c.u32(&m.FID) }

// Read reads from an open file. The reply is a Data.
type Read struct {
	FID    uint32
	Offset uint64
	Count  uint32
}

func (m *Read) fields(c *Coder) { c.u32(&m.FID); c.u64(&m.Offset); c.u32(&m.Count) }

// Data is the reply to Read and Readdir.
type Data struct{ Data []byte }

func (m *Data) fields(c *Coder) { c.data(&m.Data) }

// Write writes to an open file. The reply is a Count.
type Write struct {
	FID    uint32
	Offset uint64
	Data   []byte
}

func (m *Write) fields(c *Coder) { c.u32(&m.FID); c.u64(&m.Offset); c.data(&m.Data) }

// Count is the reply to Write.
type Count struct{ Count uint32 }

func (m *Count) fields(c *Coder) { c.u32(&m.Count) }
