package ninep

import "loam/fs"

// Conversions between the attributes of the protocol and those of package fs.

func keyOf(q QID) key { return key{q.Path, q.Version} }

// attrOf converts attributes of the protocol.
func attrOf(a *Attr) fs.Attr {
	return fs.Attr{
		Inode: a.QID.Path, Mode: fs.Mode(a.Mode), Links: uint32(a.Links), UID: a.UID, GID: a.GID,
		Device: fs.DeviceOf(a.Device), Size: int64(a.Size), Blocks: int64(a.Blocks), BlockSize: int64(a.BlockSize),
		Access: timeOf(a.Access), Modify: timeOf(a.Modify), Status: timeOf(a.Status),
	}
}

// record has the attributes of a file and its key.
type record struct {
	fs.Attr
	key key
}

func recordOf(a *Attr) record { return record{attrOf(a), keyOf(a.QID)} }

func timeOf(t Time) fs.Time { return fs.Time(int64(t.Sec)*1e9 + int64(t.Nsec)) }

// wireTime is the inverse of timeOf.
func wireTime(t fs.Time) Time {
	sec, nsec := int64(t)/1e9, int64(t)%1e9
	if nsec < 0 {
		sec, nsec = sec-1, nsec+1e9
	}
	return Time{uint64(sec), uint64(nsec)}
}
